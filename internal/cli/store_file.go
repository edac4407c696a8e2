package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
)

var fileScheme = scheme{
	names: []string{"file"},
	usage: "file, file:PATH, file:PATH?shared=true",
	help: `An SQLite file, for locks between the processes of one machine. Without a
PATH it is a file of your own, which other users do not share. The directory
of any other file has to exist. A file for several users has to be writable
by them and needs shared=true. In PATH write %25 for % and %3F for ?.`,
	open: openFile,
}

func openFile(ctx context.Context, urls []string, log *slog.Logger) (store.Store, error) {
	if len(urls) != 1 {
		return nil, errors.New("a file store is one file: give one file: URL")
	}
	path, o, err := fileOf(urls[0])
	if err != nil {
		return nil, err
	}
	o.Logger = log
	return filestore.OpenFile(ctx, path, o)
}

// fileOf returns the file that a URL names. The directory is created only for the
// default file.
func fileOf(raw string) (path string, o *filestore.Options, err error) {
	o = &filestore.Options{}
	if path, o.Shared, err = parseFileURL(raw); err == nil && path == "" {
		o.MakeDir = true
		path, err = defaultFile()
	}
	return path, o, err
}

// parseFileURL parses a file: URL. An empty path means the default file.
func parseFileURL(raw string) (path string, shared bool, err error) {
	rest := strings.TrimPrefix(strings.TrimPrefix(raw, "file"), ":")
	rest, query, _ := strings.Cut(rest, "?")
	path, full := strings.CutPrefix(rest, "//")
	if full && !strings.HasPrefix(path, "/") {
		return "", false, fmt.Errorf("%q names a file of another machine: a path follows file:, or three slashes, as in file:///var/lib/locks.db", raw)
	}
	if path, err = url.PathUnescape(path); err != nil {
		return "", false, fmt.Errorf("%q: %w: in a path, %% is written %%25", raw, err)
	}
	if runtime.GOOS == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:] // file:///C:/...
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return "", false, fmt.Errorf("%q: %w: settings look like ?shared=true", raw, err)
	}
	for k, v := range settings {
		if k != "shared" {
			return "", false, fmt.Errorf("unknown setting %q of a file: there is shared", k)
		}
		if shared, err = strconv.ParseBool(v[len(v)-1]); err != nil {
			return "", false, fmt.Errorf("setting shared=%q of a file: it is true or false", v[len(v)-1])
		}
	}
	return path, shared, nil
}

// defaultFile returns the path of the user's own lock file.
func defaultFile() (string, error) {
	dir, err := stateDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "leasehold", "locks.db"), nil
}

// stateDir returns the system's directory for state that should outlast a program
// but is not a document.
func stateDir(goos string, getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	var dir string
	switch goos {
	case "windows":
		dir = getenv("LocalAppData")
	case "darwin":
		if home := getenv("HOME"); home != "" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	default:
		if home := getenv("HOME"); home != "" {
			dir = filepath.Join(home, ".local", "state")
		}
	}
	if !filepath.IsAbs(dir) {
		return "", errors.New("no home directory is known, so there is no place for the default lock file: set XDG_STATE_HOME, or name a file with --store file:/path/to/locks.db")
	}
	return dir, nil
}
