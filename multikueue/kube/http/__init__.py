"""HTTP: requests, their deadlines and bounds, connections, and the errors that answers become."""
