// Package wire is how the views of operations look in JSON, and where the parameters of a request
// stand. The tags of a struct's fields decide both, for the server, the client and openapi.json.
//
// A time is RFC 3339 in UTC with milliseconds, the zero time null. A duration is a whole number of
// milliseconds. A nil list is []. Types with a JSON or a text form of their own have that form.
package wire
