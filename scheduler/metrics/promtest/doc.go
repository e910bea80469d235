// Package promtest plays the alert rules and the dashboard of docs/deploy against a real Prometheus
// that scrapes real nodes. It is a module of its own, so that the gate needs no Prometheus; make
// alerts runs it.
package promtest
