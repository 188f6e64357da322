// Package security proves what SECURITY.md says, on real servers and with all four clients: its
// ACL rules are enough, and nothing in them can be left out; TLS with client certificates works and
// keeps others out; what users name never reaches the source of a script; tokens are random.
package security
