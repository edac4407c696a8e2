package cli

import "errors"

var memoryScheme = scheme{
	names: []string{"memory"},
	usage: "memory:",
	help: `The memory of one process, for programs that use the library. This command
refuses it, since its locks would exclude nobody.`,
	refused: errors.New("memory: keeps locks in the memory of one process, so this command would exclude nobody: use file, for locks between all processes of this machine"),
}
