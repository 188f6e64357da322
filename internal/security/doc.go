// Package security proves the statements of SECURITY.md, on real servers and with all four clients:
// its ACL rules are sufficient, and nothing in them can be left out; TLS with client certificates
// works and refuses others; names, owners and notes never become part of a script; tokens are
// random.
package security
