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

// ErrInvalid: the call was refused before anything was sent.
var ErrInvalid = errors.New("redisguard: invalid call")

// Eval runs a Lua script on the server, as EVAL does, and returns its answer: a
// whole number as int64, text as string or []byte, an array as []any, and nil for
// nothing. It must not run a script a second time after an error, unless the
// first run certainly did nothing; for Set and Delete that would do no harm.
type Eval func(ctx context.Context, script string, keys, args []string) (any, error)

// Options for a Guard. Nil is fine.
type Options struct {
	// Keep is how long a token is remembered after the last write that was let
	// in. Zero: for ever, which costs one small key for every key that was ever
	// guarded, deleted ones included. A holder that was paused for longer than
	// Keep is not refused.
	Keep time.Duration
}

// Guard writes with a check of the token. It is safe for concurrent use if its
// Eval is.
type Guard struct {
	eval Eval
	keep string // milliseconds
}

// New makes a Guard. It sends nothing. The error matches ErrInvalid.
func New(eval Eval, o *Options) (*Guard, error) {
	if eval == nil {
		return nil, fmt.Errorf("%w: there is no function to run scripts with", ErrInvalid)
	}
	g := &Guard{eval: eval, keep: "0"}
	if o != nil && o.Keep != 0 {
		if o.Keep < time.Millisecond {
			return nil, fmt.Errorf("%w: Keep is %v: it needs a millisecond at least, or zero for ever", ErrInvalid, o.Keep)
		}
		g.keep = strconv.FormatInt(o.Keep.Milliseconds(), 10)
	}
	return g, nil
}

// Set writes a value to a key if token is not smaller than the largest that the
// key has seen. The value ends after ttl, in whole milliseconds; zero: never.
//
// It blocks as long as Eval does. Errors: a *fence.StaleError when the token was
// refused and nothing was written; ErrInvalid when nothing was sent; else what
// Eval returned, and then the write may have happened or may happen yet. Setting
// the same again with the same token is fine after any of these.
func (g *Guard) Set(ctx context.Context, key, value string, token fence.Token, ttl time.Duration) error {
	if ttl != 0 && ttl < time.Millisecond {
		return fmt.Errorf("%w: the time to live of %q is %v: it needs a millisecond at least, or zero for none", ErrInvalid, key, ttl)
	}
	_, err := g.run(ctx, setScript, key, token, []string{key}, []string{value, strconv.FormatInt(ttl.Milliseconds(), 10)})
	return err
}

// Delete removes a key, of whatever type, under the same condition and with the
// same errors as Set. The token stays remembered. Removing what is not there is
// no error.
func (g *Guard) Delete(ctx context.Context, key string, token fence.Token) error {
	_, err := g.run(ctx, deleteScript, key, token, []string{key}, nil)
	return err
}

// Run runs a script of yours, in one step with the check, if token is not
// smaller than the largest that the resource has seen. The resource is the name
// of what one lock protects, such as its only or its most important key; in a
// cluster it and all keys must be in one slot, by a hash tag in each. The script
// sees keys and args as KEYS and ARGV, as if it ran alone. Run returns the
// script's answer as Eval gives it.
//
// Errors are those of Set, or the script's own. A script that fails half way has
// done that half, and its token is remembered.
func (g *Guard) Run(ctx context.Context, script, resource string, token fence.Token, keys, args []string) (any, error) {
	if strings.HasPrefix(script, "#!") {
		return nil, fmt.Errorf("%w: %q: a script with a #! line cannot be made part of another: leave the line out", ErrInvalid, resource)
	}
	return g.run(ctx, compose(script), resource, token, keys, args)
}

// Admit judges the token and remembers it, and writes nothing else: for a
// resource that is not in Redis. It is what httpguard.Options take. Errors are
// those of Set.
func (g *Guard) Admit(ctx context.Context, resource string, token fence.Token) error {
	_, err := g.run(ctx, admitScript, resource, token, nil, nil)
	return err
}

//go:embed scripts/admit.lua
var admitLua string

// compose puts the work into the script that judges.
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
	return nil, fmt.Errorf("redisguard: %q: the script's answer came as %.80s (%T), which is none of its answers: check the Eval", resource, fmt.Sprint(answer), answer)
}

// refusal is the error for what the script has refused; nil if that makes no
// sense.
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

// FenceKey is the key beside a resource's own that remembers its largest token,
// in the same slot of a cluster: {resource}:fence, or resource:fence where the
// resource has a hash tag. Nothing else may write it. The error matches
// ErrInvalid.
func FenceKey(resource string) (string, error) {
	open := strings.IndexByte(resource, '{')
	switch {
	case resource == "":
		return "", fmt.Errorf("%w: the key is empty", ErrInvalid)
	case open >= 0 && strings.IndexByte(resource[open:], '}') > 1:
		return resource + ":fence", nil
	case strings.IndexByte(resource, '}') >= 0:
		return "", fmt.Errorf("%w: %q has a } and no hash tag, so no other key can be put beside it: choose another key", ErrInvalid, resource)
	}
	return "{" + resource + "}:fence", nil
}
