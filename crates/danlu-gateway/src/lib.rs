//! What a person's tools connect through: terminals and exec over WebSocket
