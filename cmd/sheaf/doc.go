// Command sheaf runs the gateway and talks to one.
//
// serve opens a data directory and answers Arrow Flight; doctor looks at a data
// directory that nobody serves. import, export, scan, tables and explain are
// clients: they speak the public wire contract (docs/wire.md) and nothing else,
// so whatever they do, any Flight client can do.
//
// Rows and answers go to stdout; progress, warnings and errors to stderr.
// Every flag is also an environment variable: --max-message is
// SHEAF_MAX_MESSAGE. The exit code says what kind of thing went wrong.
package main
