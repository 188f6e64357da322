package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// errorText returns the text to print for the error of a command, with the program's name first.
func errorText(command string, err error) string { return "holdfast: " + explain(command, err) }

// explain returns the text of err without the program's name, in the words of the command line, not
// in the library's.
func explain(command string, err error) string {
	if text := argumentText(err); text != "" {
		return text
	}
	text := trimPrefix(err)
	if op, ok := errors.AsType[*locker.OpError](err); ok && (op.Op == "inspect" || op.Op == "break") {
		said := strings.TrimPrefix(op.Error(), "holdfast: ")
		text = strings.Replace(text, said, command+strings.TrimPrefix(said, op.Op), 1)
	}
	return explainLogin(text, err)
}

// argumentText returns the text of an argument refused by the library, or "" for another error.
func argumentText(err error) string {
	invalid, ok := errors.AsType[*locker.InvalidError](err)
	if !ok {
		return ""
	}
	argument, ok := strings.CutPrefix(invalid.What, "Request.")
	if !ok {
		return ""
	}
	flag := map[string]string{
		"Name": "NAME", "TTL": "--ttl", "MinHold": "--min-hold", "MaxWait": "--max-wait", "Owner": "--owner", "Note": "--note",
	}[argument]
	if flag == "" {
		return ""
	}
	allowed := strings.NewReplacer("Request.TTL, ", "--ttl, ", ", or a TTL of 0", "").Replace(invalid.Allowed)
	return fmt.Sprintf("%s: %s; want %s", flag, invalid.Got, allowed)
}

// explainLogin names a refused login in text. The refusal comes from the connection, or as the
// reply to the first command.
func explainLogin(text string, err error) string {
	reply, ok := errors.AsType[*driver.ServerError](err)
	if !ok || !refusedLogin(reply) {
		return text
	}
	said := "login refused: " + reply.Text
	if reply.Code() != "WRONGPASS" { // some servers answer with advice for clients
		said = "login refused: the server asks for a password"
	}
	for _, before := range []string{driver.ErrNotSent.Error() + ": ", ""} {
		text = strings.ReplaceAll(text, before+reply.Error(), said)
	}
	return text
}

// takes returns a check of the number of arguments. number has it in words.
func takes(least, most int, number string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			got := "none was given"
			if len(args) > 0 {
				got = fmt.Sprintf("%d were given: %q", len(args), args)
			}
			return fmt.Errorf("%s takes %s, and %s", cmd.Name(), number, got)
		}
		return nil
	}
}
