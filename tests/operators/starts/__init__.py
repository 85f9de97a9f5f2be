"""How each project's controller is started: its settings, its webhooks, what runs beside it."""
