//! HTTP API, use-cases, reconcilers, events
