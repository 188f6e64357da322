// Package pages tests README.md and the pages of docs: their links, their code, and what they list.
package pages
