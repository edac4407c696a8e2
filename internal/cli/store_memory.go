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
	help: `The memory of one process. It is there for programs that use the library;
this command refuses it, because its locks would exclude nobody.`,
	open: func(context.Context, []string, *slog.Logger) (store.Store, error) {
		return nil, errors.New("memory: keeps locks in the memory of one process, so a lock of this command would exclude nobody: use file, which holds between all processes of this machine")
	},
}
