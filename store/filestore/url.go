package filestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	store.Register("file", func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
}

// Dir returns the folder that a URL names, for Open. It does not look for it. If the URL is wrong,
// the error matches store.ErrInvalid.
func Dir(url string) (string, error) {
	dir, _, err := resolve(url, nil)
	return dir, err
}

// resolve returns the folder that a URL names, and the options with what it sets.
func resolve(raw string, given *Options) (dir string, o Options, err error) {
	var says Options
	if dir, says.Shared, err = parseURL(raw); err != nil {
		return "", o, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	if dir == "" {
		says.MakeDir = true
		if dir, err = defaultDir(); err != nil {
			return "", o, err
		}
	}
	o, err = settings.Join(given, says)
	return dir, o, err
}

// parseURL parses a file: URL. An empty path means the default folder.
func parseURL(raw string) (path string, shared bool, err error) {
	rest := strings.TrimLeft(raw, " \t\r\n")
	if store.Scheme(rest) != "file" {
		return "", false, errors.New("the URL of a folder has the form file:DIR")
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "file"), ":")
	rest, query, _ := strings.Cut(rest, "?")
	path, full := strings.CutPrefix(rest, "//")
	if full && !strings.HasPrefix(path, "/") {
		return "", false, fmt.Errorf("%q names a folder of another machine: a path follows file:, or three slashes, as in file:///var/lib/locks", raw)
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
			return "", false, fmt.Errorf("unknown setting %q of a folder: the only one is shared", k)
		}
		if shared, err = strconv.ParseBool(v[len(v)-1]); err != nil {
			return "", false, fmt.Errorf("setting shared=%q of a folder: it must be true or false", v[len(v)-1])
		}
	}
	return path, shared, nil
}

// defaultName is the name of the user's own lock folder.
const defaultName = "locks"

// defaultDir returns the path of the user's own lock folder.
func defaultDir() (string, error) {
	dir, err := stateDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "leasehold", defaultName), nil
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
		return "", errors.New("no home directory is known, so there is no place for the default lock folder: set XDG_STATE_HOME, or name a folder, as in file:/path/to/locks")
	}
	return dir, nil
}
