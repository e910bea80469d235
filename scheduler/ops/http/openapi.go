package opshttp

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var description []byte

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	writeBody(w, r, "application/json", description)
}
