// Package admit decides whether a write may happen, and may change it on the way.
//
// It stands between decoding and validation. A Chain runs its plugins in order: first all that change objects, then all
// that only judge. Plugins are safe for concurrent use.
package admit

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// Operation is what a request does to an object.
type Operation string

// Operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Attributes say what a request is about.
type Attributes struct {
	Operation   Operation
	Resource    *catalog.Resource
	Version     *catalog.Version
	Subresource string
	Namespace   string
	Name        string // "" if it will be generated
	User        user.Info
	DryRun      bool
}

// Plugin judges writes. obj is nil for deletions, old is nil for creations; both are decoded JSON of Attributes.Version.
// An error is what the client gets.
type Plugin interface {
	// Name is kube's name for the plugin, as --disable-admission-plugins spells it.
	Name() string
	// Admit may change obj.
	Admit(ctx context.Context, a *Attributes, obj, old map[string]any) error
}

// Chain is the ordered list of plugins.
type Chain []Plugin

// Admit asks each plugin in turn and stops at the first refusal.
func (c Chain) Admit(ctx context.Context, a *Attributes, obj, old map[string]any) error {
	for _, p := range c {
		if err := p.Admit(ctx, a, obj, old); err != nil {
			return err
		}
	}
	return nil
}
