package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
)

// Exit codes besides those of package runner.
const (
	codeBusy    = 124 // somebody else has the lock
	codeTrouble = runner.CodeTrouble
)

// exitError ends the program with a code. If err is nil, the cause was already
// reported. If sig is set, the program dies of that signal where it can, and its group
// with it if typed is set: see package sigaction.
type exitError struct {
	code  int
	err   error
	sig   syscall.Signal
	typed bool
}

// endOf returns the error for a command that ended as o says. code is the one to exit with.
func endOf(o runner.Outcome, code int) error {
	switch {
	case code == 0:
		return nil
	case o.Err == nil && o.Signal != 0 && code == o.Code:
		return &exitError{code: code, sig: o.Signal, typed: o.Typed}
	}
	return &exitError{code: code}
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// codeOf returns the code to exit with after err.
func codeOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	return codeTrouble
}

// usage returns an error in how c was called.
func usage(c *cobra.Command, format string, args ...any) error {
	return fmt.Errorf(format+" (see %q)", append(args, c.CommandPath()+" --help")...)
}

// flagError returns err, which is about a flag of c, in words for people: the errors of
// flags with numbers are those of package strconv.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return noFlag(c, unknown.GetSpecifiedName())
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return badTime(c, invalid.GetFlag().Name, invalid.GetValue())
	}
	var number *strconv.NumError
	if !errors.As(err, &invalid) || !errors.As(err, &number) || number.Func == "ParseBool" {
		return usage(c, "%w", err)
	}
	problem := "not a whole number"
	if errors.Is(number, strconv.ErrRange) {
		problem = "out of range"
	}
	return usage(c, "--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), problem)
}

// noArguments checks the arguments of commands that take none.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(c.Use, "--store"):
		return usage(c, "it takes no arguments: name the servers with --store")
	}
	return usage(c, "it takes no arguments")
}

// oneName checks the arguments of commands that take the name of one lock.
func oneName(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage(c, "give the name of a lock")
	case 1:
		return nil
	}
	return usage(c, "give the name of one lock, not %d", len(args))
}
