//go:build unix

package load

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"time"
)

// WorkerVariable is set in the environment of worker processes. In these, a program that calls
// RunProcesses must only call Worker.
const WorkerVariable = "HOLDFAST_PEERS_WORKER"

// message is a line from a worker process: first Ready, then a Tally or an Error.
type message struct {
	Ready bool   `json:",omitempty"`
	Tally *Tally `json:",omitempty"`
	Error string `json:",omitempty"`
}

// Worker is the program of a worker process. It reads a Job from in, one line of JSON, reports by a
// line to out that it is ready, reads the time to start, and writes its Tally. It ends early if in
// does, as when its parent dies.
func Worker(in io.Reader, out io.Writer) error {
	lines, write := bufio.NewReader(in), json.NewEncoder(out)
	var job Job
	if err := readLine(lines, &job); err != nil {
		return err
	}
	tally, err := Run(job, Hooks{Ready: func() (start time.Time, err error) {
		if err := write.Encode(message{Ready: true}); err != nil {
			return start, err
		}
		if err := readLine(lines, &start); err != nil {
			return start, err
		}
		go func() {
			_, _ = io.Copy(io.Discard, lines)
			os.Exit(1) // nobody is left to report to
		}()
		return start, nil
	}})
	if err != nil {
		return write.Encode(message{Error: err.Error()})
	}
	return write.Encode(message{Tally: tally})
}

func readLine(r *bufio.Reader, into any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}
