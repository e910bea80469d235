// Package console serves the web console: pages that show a namespace over its HTTP API, and
// operate it.
//
// The pages are files in dist, embedded and without any address in them: the browser finds the API
// and its files beside the page, and the place inside the console stands behind the address's "#".
// So the console works below any base path, also behind a proxy that strips the path. The files are
// built from web by `make console`.
package console
