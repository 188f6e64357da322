// Package rwhash
package rwhash
