// Package encrypt encrypts stored objects, as kube-apiserver does with --encryption-provider-config.
//
// It stands between the view and the store: writes pass Encrypt, reads pass Decrypt. The formats, the prefixes of
// values ("k8s:enc:secretbox:v1:key1:"), the calls to KMS plugins and the configuration file with its errors come from
// Kubernetes' library, so that both servers can read each other's data. This package maps keys to resources, reloads a
// changed file, and limits the cost of a plugin that does not answer.
//
// Encryption is safe for concurrent use. A resource that the file does not name costs one map look-up. Errors and logs
// contain no values, keys or content of the file.
package encrypt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	encryptionmetrics "k8s.io/apiserver/pkg/server/options/encryptionconfig/metrics"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/util/feature"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Config configures the encryption.
type Config struct {
	// File is the path of an EncryptionConfiguration.
	File string
	// Reload makes Run reload a changed file. There is then one health check of all KMS plugins.
	Reload bool
	// KMSv1 also accepts plugins of KMS API v1. It applies to the whole process.
	KMSv1 bool
	// Server identifies this server in metrics.
	Server string
	// Kind returns the resource of a prefix, false if there is none.
	Kind func(prefix string) (schema.GroupResource, bool)
	// Instead returns the prefix of the resource with the providers for values that the file does not name: values with
	// sensitive fields. "" means none. Optional.
	Instead func(prefix string) string
	// Path returns the key in etcd, which is the authenticated data of values.
	Path func(key string) string
	// Log is required.
	Log *slog.Logger
}

// Encryption encrypts and decrypts by a configuration that may be replaced.
type Encryption struct {
	config  Config
	current atomic.Pointer[providers]
	outages sync.Map // provider -> *outage
}

// providers are the parsed state of the file.
type providers struct {
	hash   string
	named  map[schema.GroupResource]value.Transformer
	checks []healthz.HealthChecker
	grace  time.Duration // longer than any call to its plugins lasts
	end    context.CancelFunc
	kinds  sync.Map // prefix -> value.Transformer, nil if it is not named
}

// encrypted is the prefix of every encrypted value.
var encrypted = []byte("k8s:enc:")

var errNotNamed = errors.New("identity transformer tried to read encrypted data") // Kubernetes' text

// None is Decrypt without encryption: it rejects encrypted values.
func None(_, _ string, stored []byte) ([]byte, error) {
	if bytes.HasPrefix(stored, encrypted) {
		return nil, errNotNamed
	}
	return stored, nil
}

// Open reads the configuration, and begins to talk to the plugins that it names. Close ends it.
func Open(c Config) (*Encryption, error) {
	if c.KMSv1 {
		if err := feature.DefaultMutableFeatureGate.Set("KMSv1=true"); err != nil {
			return nil, err
		}
	}
	e := &Encryption{config: c}
	now, err := e.load()
	if err != nil {
		return nil, fmt.Errorf("--encryption-provider-config: %w", err)
	}
	e.current.Store(now)
	encryptionmetrics.RecordEncryptionConfigLastConfigInfo(c.Server, now.hash)
	return e, nil
}

// load reads the file. The library's background work ends with the providers.
func (e *Encryption) load() (*providers, error) {
	ctx, end := context.WithCancel(context.Background())
	c, err := encryptionconfig.LoadEncryptionConfig(ctx, e.config.File, e.config.Reload, e.config.Server)
	if err != nil {
		end()
		return nil, redacted(err, e.config.File)
	}
	return &providers{
		hash: c.EncryptionFileContentHash, named: c.Transformers, checks: c.HealthChecks, grace: c.KMSCloseGracePeriod,
		end: end,
	}, nil
}

// Close ends the library's background work. Values encrypted by plugins become unreadable. Run must have returned.
func (e *Encryption) Close() { e.current.Load().end() }

// transformer returns the transformer of objects below a prefix, nil if there is none.
func (e *Encryption) transformer(p *providers, prefix string) value.Transformer {
	if t, ok := p.kinds.Load(prefix); ok {
		t, _ := t.(value.Transformer)
		return t
	}
	var t value.Transformer
	if gr, ok := e.config.Kind(prefix); ok && p.names(gr) {
		t = encryptionconfig.StaticTransformers(p.named).TransformerForResource(gr)
	}
	p.kinds.Store(prefix, t)
	return t
}

// names reports whether the file covers a resource: by its name, its group, or a wildcard.
func (p *providers) names(gr schema.GroupResource) bool {
	return p.named[gr] != nil || p.named[schema.GroupResource{Group: gr.Group, Resource: "*"}] != nil ||
		p.named[schema.GroupResource{Group: "*", Resource: "*"}] != nil
}

// Covers reports whether the objects below a prefix pass one of the file's providers.
func (e *Encryption) Covers(prefix string) bool {
	return e.transformer(e.current.Load(), prefix) != nil
}

// Instead returns the prefix with the providers for objects with sensitive fields below another prefix that the file
// does not cover; "" means none.
func (e *Encryption) Instead(prefix string) string {
	if e.config.Instead == nil {
		return ""
	}
	return e.config.Instead(prefix)
}

// Encrypt returns the stored form of the value of a key, which is unchanged for a resource that the file does not
// cover.
func (e *Encryption) Encrypt(ctx context.Context, prefix, key string, plain []byte) ([]byte, error) {
	t := e.transformer(e.current.Load(), prefix)
	if t == nil {
		return plain, nil
	}
	stored, err := t.TransformToStorage(ctx, plain, e.about(key))
	return stored, foreign.Error(err)
}

// Decrypt reverses Encrypt. It can also decrypt values of the file's other providers and keys, and read unencrypted
// values if the file allows it.
func (e *Encryption) Decrypt(prefix, key string, stored []byte) ([]byte, error) {
	plain, _, err := e.decrypt(prefix, key, stored)
	return plain, err
}

// Stale reports whether the stored value of a key would now be encrypted differently: by another key or provider, or
// not at all. It returns false for an unreadable value.
func (e *Encryption) Stale(prefix, key string, stored []byte) bool {
	_, stale, err := e.decrypt(prefix, key, stored)
	return stale && err == nil
}

func (e *Encryption) decrypt(prefix, key string, stored []byte) (plain []byte, stale bool, err error) {
	t := e.transformer(e.current.Load(), prefix)
	if t == nil && bytes.HasPrefix(stored, encrypted) {
		t = e.transformer(e.current.Load(), e.Instead(prefix))
	}
	if t == nil {
		plain, err = None(prefix, key, stored)
		return plain, false, err
	}
	provider := pluginOf(stored)
	if err := e.out(provider); err != nil {
		return nil, false, err
	}
	began := time.Now()
	plain, stale, err = t.TransformFromStorage(context.Background(), stored, e.about(key)) // plugins have timeouts
	err = foreign.Error(err)                                                               // a plugin's text
	e.note(provider, time.Since(began), err)
	return plain, stale, err
}

func (e *Encryption) about(key string) value.Context { return value.DefaultContext(e.config.Path(key)) }

// Check is a condition of health.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Checks returns the health checks of the KMS plugins. Their names stay when the file changes.
func (e *Encryption) Checks() []Check {
	var out []Check
	for i, c := range e.current.Load().checks {
		out = append(out, Check{Name: c.Name(), Run: func(ctx context.Context) error {
			return check(ctx, e.current.Load().checks[i]) // with Reload there is always exactly one
		}})
	}
	return out
}

// check runs one of the library's health checks, which need a request.
func check(ctx context.Context, c healthz.HealthChecker) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz/"+c.Name(), nil)
	if err != nil {
		return err
	}
	return c.Check(r)
}
