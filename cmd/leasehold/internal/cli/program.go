package cli

import "os"

// program is one run of the command.
type program struct {
	stdin, stdout, stderr *os.File

	voice *voice
	where storeFlags

	report textfile // about the command that is run
}

// operator has the commands that set up and examine servers.
type operator struct{ *program }
