// Package manifest reads webhook configurations and policies from files (KEP-5793), and reads them again when the files
// change. An operator uses it for rules that no client of the API may remove.
//
// A folder belongs to one admission plugin: package configuration reads its name, and a Source keeps its objects. Open
// functions (ValidatingWebhooks and the like) return an error for invalid files, so that the server does not start
// without its rules. After the start, an invalid change is logged and counted, and the previous objects stay.
//
// Files are stricter than objects in the API. Names end with registration.ManifestSuffix, webhooks have a URL, and
// policies have no parameters: nothing in a file depends on an object that a client can write. Error texts are those of
// kube-apiserver (k8s.io/apiserver/pkg/admission/plugin/manifest); test/oracle-builtins compares.
//
// A Source is safe for concurrent use. Its one goroutine is the caller's of Run.
package manifest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bowsprit/bowsprit/internal/admit/source"
)

const (
	// lookEvery is the interval for checking the folder. kube-apiserver receives file system events, and also checks
	// each minute.
	lookEvery = 2 * time.Second
	// complainEvery is the interval for logging and counting an error that stays the same.
	complainEvery = time.Minute
)

// Config describes the folder of one plugin. Metrics may be nil.
type Config struct {
	Folder  string
	Plugin  string // the plugin's name, for logs and metrics
	Now     func() time.Time
	Log     *slog.Logger
	Metrics *Metrics
}

// Source keeps the objects of a folder. A nil *Source has none.
type Source[T any] struct {
	config Config
	read   func(documents []document) ([]T, error)

	current atomic.Pointer[source.List[T]]
	reload  struct {
		sync.Mutex
		hash       string // of the last files that could be decoded
		complaint  string // the last logged error, "" if the folder is valid
		complainAt time.Time
	}
}

// open returns a source with the current objects of the folder.
func open[T any](c Config, read func(documents []document) ([]T, error)) (*Source[T], error) {
	s := &Source[T]{config: c, read: read}
	items, hash, err := s.load()
	if err != nil {
		return nil, err
	}
	s.reload.hash = hash
	s.apply(items, hash)
	c.Log.Info("admission manifests loaded", "plugin", c.Plugin, "folder", c.Folder, "objects", len(items))
	return s, nil
}

// List returns the current objects, in the order of their names.
func (s *Source[T]) List() *source.List[T] {
	if s == nil {
		return nil
	}
	return s.current.Load()
}

// Run reads the folder again when it has changed, until ctx ends.
func (s *Source[T]) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { s.Reload() }, lookEvery)
}

// Reload checks the folder and applies changes. Invalid files are logged, and the previous objects stay.
func (s *Source[T]) Reload() {
	s.reload.Lock()
	defer s.reload.Unlock()
	items, hash, err := s.load()
	if err != nil {
		s.complainLocked(err)
		return
	}
	s.reload.complaint = ""
	if hash == s.reload.hash {
		return
	}
	s.reload.hash = hash
	s.apply(items, hash)
	s.config.Log.Info("admission manifests reloaded", "plugin", s.config.Plugin, "folder", s.config.Folder,
		"objects", len(items))
}

func (s *Source[T]) complainLocked(err error) {
	now := s.config.Now()
	if text := err.Error(); text != s.reload.complaint {
		s.reload.complaint = text
	} else if now.Before(s.reload.complainAt) {
		return
	}
	s.reload.complainAt = now.Add(complainEvery)
	s.config.Metrics.reloaded(s.config.Plugin, false, now)
	s.config.Log.Error("cannot use the admission manifests; the previous ones stay in force", "plugin",
		s.config.Plugin, "folder", s.config.Folder, "error", err)
}

func (s *Source[T]) load() (items []T, hash string, err error) {
	documents, hash, err := readFolder(s.config.Folder)
	if err != nil {
		return nil, "", err
	}
	items, err = s.read(documents)
	return items, hash, err
}

func (s *Source[T]) apply(items []T, hash string) {
	s.current.Store(source.Fixed(items))
	s.config.Metrics.reloaded(s.config.Plugin, true, s.config.Now())
	s.config.Metrics.applied(s.config.Plugin, hash)
}

// opened adds the folder to an error of the start, as kube-apiserver does. kind is "webhook" or "policy".
func opened[T any](s *Source[T], err error, kind, folder string) (*Source[T], error) {
	if err != nil {
		return nil, fmt.Errorf("failed to load static %s manifests from %q: %w", kind, folder, err)
	}
	return s, nil
}
