// Package opshttp serves a namespace over HTTP, and has the client: an ops.Client without access to
// Redis.
//
// The server is a handler below /api/v1. What it answers is the JSON that the command line prints,
// errors are problem details (RFC 9457), and openapi.json describes all of it. Lists are arrays;
// the header Link names the next page. What changes comes as server-sent events.
package opshttp
