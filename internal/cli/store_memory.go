package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/leasehold-dev/leasehold/store"
)

var memoryScheme = scheme{
	names: []string{"memory"},
	usage: "memory:",
	help: `The memory of one process, for programs that use the library. This command
refuses it, since its locks would exclude nobody.`,
	open: func(context.Context, []string, *slog.Logger) (store.Store, error) {
		return nil, errors.New("memory: keeps locks in the memory of one process, so this command would exclude nobody: use file, for locks between all processes of this machine")
	},
}
