//go:build mutants

package redisstore

import (
	"maps"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Mechanisms of the packages of this one, by name: setting one to false takes it out.
var Mechanisms = maps.Clone(node.Mechanisms)

func init() { Mechanisms["error-says-nothing"] = &script.ErrorsSayNothing }
