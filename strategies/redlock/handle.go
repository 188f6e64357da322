package redlock

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// tokenForm marks the token of a quorum and its version.
const tokenForm = "redlock1."

// encodeToken makes one token of the nodes'. "" stands for a node that has none.
func encodeToken(tokens []string) string {
	raw := make([][]byte, len(tokens)) // bytes: JSON would mend what is not UTF-8
	for i, t := range tokens {
		raw[i] = []byte(t)
	}
	text, err := json.Marshal(raw)
	if err != nil {
		panic(err) // bytes always marshal
	}
	return tokenForm + base64.RawURLEncoding.EncodeToString(text)
}

// decodeToken finds the tokens of n nodes.
func decodeToken(token string, n int) ([]string, error) {
	var raw [][]byte
	text, ours := strings.CutPrefix(token, tokenForm)
	if ours {
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		ours = err == nil && json.Unmarshal(decoded, &raw) == nil
	}
	if !ours {
		return nil, invalid("Request.Resume", "a handle of another strategy", "a handle of a redlock lock")
	}
	if len(raw) != n {
		return nil, invalid("Request.Resume", fmt.Sprintf("a handle of %d nodes", len(raw)), fmt.Sprintf("a handle of %d nodes", n))
	}
	tokens := make([]string, n)
	for i, t := range raw {
		tokens[i] = string(t)
	}
	return tokens, nil
}
