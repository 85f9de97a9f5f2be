"""The kinds the server serves: their rows, schemas and shapes. Imports nothing of the server but `encoding`."""
