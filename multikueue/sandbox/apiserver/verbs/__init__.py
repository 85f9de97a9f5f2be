"""What each verb does to the stored objects."""
