package redlock

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// tokenForm marks the token of a quorum and its version.
const tokenForm = "redlock1."

// wireToken holds bytes, not strings: JSON would replace invalid UTF-8.
type wireToken struct {
	Nodes [][]byte
	Note  []byte `json:",omitempty"` // for nodes restored after a resume
}

// encodeToken makes one token of the nodes'. "" stands for none.
func encodeToken(tokens []string, note string) string {
	raw := wireToken{Nodes: make([][]byte, len(tokens)), Note: []byte(note)}
	for i, t := range tokens {
		raw.Nodes[i] = []byte(t)
	}
	text, err := json.Marshal(raw)
	if err != nil {
		panic(err) // bytes always marshal
	}
	return tokenForm + base64.RawURLEncoding.EncodeToString(text)
}

// decodeToken finds the tokens of n nodes, and the hold's note.
func decodeToken(token string, n int) (tokens []string, note string, err error) {
	var raw wireToken
	text, ours := strings.CutPrefix(token, tokenForm)
	if ours {
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		ours = err == nil && json.Unmarshal(decoded, &raw) == nil
	}
	if !ours {
		return nil, "", argument.Invalid("Request.Resume", "a handle of another strategy", "a handle of a redlock lock")
	}
	if got := len(raw.Nodes); got != n {
		return nil, "", argument.Invalid("Request.Resume", fmt.Sprintf("a handle of %d nodes", got),
			fmt.Sprintf("a handle of %d nodes", n))
	}
	tokens = make([]string, n)
	for i, t := range raw.Nodes {
		tokens[i] = string(t)
	}
	return tokens, string(raw.Note), nil
}
