"""Telling people: the outbox's lines become messages, and the messages are sent."""
