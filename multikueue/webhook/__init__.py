"""The admission webhook: answering reviews, its certificates, and its registration."""
