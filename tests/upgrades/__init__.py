"""A daemon of an earlier commit begins what one of today's goes on with, and the other way."""
