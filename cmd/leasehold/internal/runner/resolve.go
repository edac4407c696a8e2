package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// StartError reports why a command could not be started.
type StartError struct {
	Command string
	Code    int // to exit with: CodeNotFound, CodeNotExecutable, or CodeTrouble
	Err     error
}

func (e *StartError) Error() string {
	switch {
	case e.Code == CodeNotFound && strings.ContainsFunc(strings.TrimSpace(e.Command), unicode.IsSpace):
		return fmt.Sprintf("%q: command not found: it is one word with spaces, and there is no shell that splits it: leave out the quotation marks, or write -- sh -c %q", e.Command, e.Command)
	case errors.Is(e.Err, exec.ErrNotFound):
		return fmt.Sprintf("%q: command not found", e.Command)
	case isFormat(e.Err):
		return fmt.Sprintf("%q cannot be run: %v (a script needs a first line that names its interpreter, such as #!/bin/sh: no shell is used)", e.Command, e.Err)
	}
	return fmt.Sprintf("%q cannot be run: %v", e.Command, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

var errNotExecuted = errors.New("the process that was started for it ended before it could be executed")

// startError gives err the code that shells give it.
func startError(command string, err error) *StartError {
	var wrapped *exec.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	code := CodeNotExecutable
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		code = CodeNotFound
	case errors.Is(err, errNotExecuted):
		code = CodeTrouble
	}
	return &StartError{Command: command, Code: code, Err: err}
}

// Resolve finds the executable for a command's name as a shell does: in PATH,
// unless the name has a slash. Callers use it before they acquire a lock, so that
// a command that cannot run takes none. The error is a *StartError.
func Resolve(name string) (path string, err error) {
	path, err = exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return path, nil // PATH itself names the working directory: as the user wants
	case errors.Is(err, exec.ErrNotFound) && notExecutable(name):
		err = fs.ErrPermission
	}
	return "", startError(name, err)
}

// notExecutable reports whether PATH has a file of that name, which LookPath
// passed over because it may not be executed.
func notExecutable(name string) bool {
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if i, err := os.Stat(filepath.Join(dir, name)); err == nil && !i.IsDir() {
			return true
		}
	}
	return false
}
