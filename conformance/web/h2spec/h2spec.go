//go:build tools

// Package h2spec names what is built here: a judge of HTTP/2 servers.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
