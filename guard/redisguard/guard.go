package redisguard

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// ErrInvalid means that the call was refused before anything was sent.
var ErrInvalid = errors.New("redisguard: invalid call")

// Eval runs a Lua script on the server, as EVAL does, and returns its reply: an
// integer as int64, text as string or []byte, an array as []any, and a nil reply
// as nil. It must not run the script again after an error, unless the first run
// certainly had no effect. (For Set and Delete a second run is harmless.)
type Eval func(ctx context.Context, script string, keys, args []string) (any, error)

// Options configure a Guard. Nil means the defaults.
type Options struct {
	// Keep is how long a token is remembered after the last accepted write. A
	// holder that was paused for longer than Keep is not refused. Zero means for
	// ever, which costs one small key for every key ever guarded, even after it
	// is deleted.
	Keep time.Duration
}

// Guard checks the token of every write. It is safe for concurrent use if its
// Eval is. Its methods block as long as Eval does.
type Guard struct {
	eval Eval
	keep string // milliseconds
}

// New returns a Guard. It sends nothing. The error matches ErrInvalid.
func New(eval Eval, o *Options) (*Guard, error) {
	if eval == nil {
		return nil, fmt.Errorf("%w: the Eval function is nil", ErrInvalid)
	}
	g := &Guard{eval: eval, keep: "0"}
	if o != nil && o.Keep != 0 {
		if o.Keep < time.Millisecond {
			return nil, fmt.Errorf("%w: Keep is %v: it must be at least a millisecond, or zero for ever", ErrInvalid, o.Keep)
		}
		g.keep = strconv.FormatInt(o.Keep.Milliseconds(), 10)
	}
	return g, nil
}

// Set writes a value to a key if token is not smaller than the largest that the
// key has seen. The key expires after ttl, in whole milliseconds; zero means
// never.
//
// The error is a *fence.StaleError if the token was refused, and matches
// ErrInvalid if nothing was sent; in both cases nothing was written. After any
// other error, which is that of Eval, the write may have happened or may yet
// happen. It is safe to call Set again with the same value and token.
func (g *Guard) Set(ctx context.Context, key, value string, token fence.Token, ttl time.Duration) error {
	if ttl != 0 && ttl < time.Millisecond {
		return fmt.Errorf("%w: the TTL of %q is %v: it must be at least a millisecond, or zero for none", ErrInvalid, key, ttl)
	}
	_, err := g.run(ctx, setScript, key, token, []string{key}, []string{value, strconv.FormatInt(ttl.Milliseconds(), 10)})
	return err
}

// Delete deletes a key of any type, under the same condition and with the same
// errors as Set. The token is still remembered. Deleting a missing key is not an
// error.
func (g *Guard) Delete(ctx context.Context, key string, token fence.Token) error {
	_, err := g.run(ctx, deleteScript, key, token, []string{key}, nil)
	return err
}

// Run runs the caller's script, in one step with the check, if token is not
// smaller than the largest that the resource has seen. resource is the name of
// what one lock protects, such as its only or most important key. In a cluster,
// the resource and all keys must be in one slot, by a hash tag in each. The
// script sees keys and args as KEYS and ARGV, as if it ran alone. Run returns the
// script's reply as Eval returns it.
//
// The errors are those of Set, and the script's own. If a script fails halfway,
// its first half has taken effect and its token is remembered.
func (g *Guard) Run(ctx context.Context, script, resource string, token fence.Token, keys, args []string) (any, error) {
	if strings.HasPrefix(script, "#!") {
		return nil, fmt.Errorf("%w: %q: a script with a #! line cannot be embedded in another: remove the line", ErrInvalid, resource)
	}
	return g.run(ctx, compose(script), resource, token, keys, args)
}

// Admit checks the token and remembers it, and writes nothing else. It is for a
// resource that is not in Redis: with Highest, it implements httpguard.Memory. The errors are
// those of Set.
func (g *Guard) Admit(ctx context.Context, resource string, token fence.Token) error {
	_, err := g.run(ctx, admitScript, resource, token, nil, nil)
	return err
}

// Highest returns the largest token that the resource remembers, or zero if there is
// none. The error matches ErrInvalid if nothing was sent.
func (g *Guard) Highest(ctx context.Context, resource string) (fence.Token, error) {
	fenceKey, err := FenceKey(resource)
	if err != nil {
		return 0, err
	}
	answer, err := g.eval(ctx, `return redis.call('GET', KEYS[1]) or '0'`, []string{fenceKey}, nil)
	if err != nil {
		return 0, fmt.Errorf("redisguard: %q: %w", resource, err)
	}
	if text(answer) == "0" {
		return 0, nil
	}
	highest, err := fence.Parse(text(answer))
	if err != nil {
		return 0, fmt.Errorf("redisguard: %q: %s should hold a fencing token and holds something else: %w", resource, fenceKey, err)
	}
	return highest, nil
}

//go:embed scripts/admit.lua
var admitLua string

// compose returns the script that checks the token and then does work.
func compose(work string) string { return strings.Replace(admitLua, "--WORK--", work, 1) }

var (
	setScript = compose(`if ARGV[2] == '0' then redis.call('SET', KEYS[1], ARGV[1])
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`)
	deleteScript = compose(`redis.call('DEL', KEYS[1])`)
	admitScript  = compose(``)
)

func (g *Guard) run(ctx context.Context, script, resource string, token fence.Token, keys, args []string) (any, error) {
	fenceKey, err := FenceKey(resource)
	if err != nil {
		return nil, err
	}
	if err := token.Check(); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, resource, err)
	}
	answer, err := g.eval(ctx, script,
		append([]string{fenceKey}, keys...),
		append([]string{token.String(), g.keep}, args...))
	if err != nil {
		return nil, fmt.Errorf("redisguard: %q: %w", resource, err)
	}
	pair, _ := answer.([]any)
	if len(pair) == 2 {
		switch verdict, _ := pair[0].(int64); {
		case verdict == 1:
			return pair[1], nil
		case verdict == 0:
			if err := refusal(resource, text(pair[1]), token); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("redisguard: %q: unexpected reply %.80s (%T) of the script: check the Eval function", resource, fmt.Sprint(answer), answer)
}

// refusal returns the error for a refusal by the script, or nil if the reply
// makes no sense.
func refusal(resource, highest string, offered fence.Token) error {
	seen, err := fence.Parse(highest)
	if err != nil {
		return nil
	}
	_, err = fence.Admit(resource, seen, offered)
	return err
}

func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	s, _ := v.(string)
	return s
}

const taggedSuffix = ":fence:tagged"

// FenceKey returns the key that keeps the largest token of a resource. It is in
// the same slot of a cluster: {resource}:fence, or resource:fence:tagged if the
// resource has a hash tag, so no two resources share one. Nothing else may write it.
// The error matches ErrInvalid.
func FenceKey(resource string) (string, error) {
	open := strings.IndexByte(resource, '{')
	switch {
	case resource == "":
		return "", fmt.Errorf("%w: the key is empty", ErrInvalid)
	case open >= 0 && strings.IndexByte(resource[open:], '}') > 1:
		if strings.HasSuffix(resource, "}:fence") || strings.HasSuffix(resource, taggedSuffix) {
			return "", fmt.Errorf("%w: %q is the name of a fence: choose another key", ErrInvalid, resource)
		}
		return resource + taggedSuffix, nil
	case strings.IndexByte(resource, '}') >= 0:
		return "", fmt.Errorf("%w: %q has a } and no hash tag, so no other key can be put beside it: choose another key", ErrInvalid, resource)
	}
	return "{" + resource + "}:fence", nil
}
