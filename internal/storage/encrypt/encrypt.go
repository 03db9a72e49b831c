// Package encrypt encrypts what is stored, as kube-apiserver does by --encryption-provider-config.
//
// It stands between the view and the store: what is written passes Encrypt, what is read passes Decrypt. The formats,
// the prefixes of values ("k8s:enc:secretbox:v1:key1:"), the calls to KMS plugins and the configuration file with its
// errors are those of Kubernetes' library, so that one server reads what the other has written. Ours is which resource
// a key belongs to, what happens when the file changes, and that a plugin which does not answer costs its time once.
//
// Encryption is safe for concurrent use. A resource that the file does not name is found in a map, and nothing else is
// done about it. Values, keys and what the file holds are in no error and no log.
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

	"github.com/bowsprit/bowsprit/internal/foreign"
)

// Config says what is encrypted, and how.
type Config struct {
	// File holds an EncryptionConfiguration.
	File string
	// Reload has Run look for changes of the file. The health check of KMS plugins is one then, whatever their number.
	Reload bool
	// KMSv1 takes plugins of the first version of the KMS API too. It counts for the whole process.
	KMSv1 bool
	// Server names this server in metrics.
	Server string
	// Kind returns the resource whose objects lie below a prefix, false if it is none.
	Kind func(prefix string) (schema.GroupResource, bool)
	// Instead returns the prefix of another resource, by whose providers values are encrypted and decrypted of which
	// the file says nothing: those with sensitive fields. "" is none. Optional.
	Instead func(prefix string) string
	// Path returns the key in etcd: the data that values are authenticated with.
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

// providers are what one state of the file says.
type providers struct {
	hash   string
	named  map[schema.GroupResource]value.Transformer
	checks []healthz.HealthChecker
	grace  time.Duration // longer than any call to its plugins lasts
	end    context.CancelFunc
	kinds  sync.Map // prefix -> value.Transformer, nil if it is not named
}

// encrypted begins every value that one of the providers has encrypted.
var encrypted = []byte("k8s:enc:")

var errNotNamed = errors.New("identity transformer tried to read encrypted data") // kube's text

// None is Decrypt where nothing is to be encrypted: it refuses what is.
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

// load reads the file. What the library does in the background ends with the providers.
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

// Close ends what the library does in the background. What is encrypted by plugins cannot be read any more.
// Run must have returned.
func (e *Encryption) Close() { e.current.Load().end() }

// transformer returns what encrypts the objects below a prefix, nil if nothing does.
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

// names reports whether the file says anything of a resource: by its name, as one of its group, or as one of all.
func (p *providers) names(gr schema.GroupResource) bool {
	return p.named[gr] != nil || p.named[schema.GroupResource{Group: gr.Group, Resource: "*"}] != nil ||
		p.named[schema.GroupResource{Group: "*", Resource: "*"}] != nil
}

// Covers reports whether the objects below a prefix pass one of the file's providers.
func (e *Encryption) Covers(prefix string) bool {
	return e.transformer(e.current.Load(), prefix) != nil
}

// Instead returns the prefix as whose objects those below another are encrypted if they have sensitive fields and the
// file says nothing of them; "" is none.
func (e *Encryption) Instead(prefix string) string {
	if e.config.Instead == nil {
		return ""
	}
	return e.config.Instead(prefix)
}

// Encrypt returns the bytes that stand in the store for the value of a key. For a resource that the file does not name
// these are its own.
func (e *Encryption) Encrypt(ctx context.Context, prefix, key string, plain []byte) ([]byte, error) {
	t := e.transformer(e.current.Load(), prefix)
	if t == nil {
		return plain, nil
	}
	stored, err := t.TransformToStorage(ctx, plain, e.about(key))
	return stored, foreign.Error(err)
}

// Decrypt is the opposite of Encrypt, and reads also what the file's other providers and keys have encrypted, and what
// has been written before there was encryption, if the file says so.
func (e *Encryption) Decrypt(prefix, key string, stored []byte) ([]byte, error) {
	plain, _, err := e.decrypt(prefix, key, stored)
	return plain, err
}

// Stale reports whether the stored value of a key would be encrypted otherwise today: by another key or provider, or
// not at all. One that cannot be read is not.
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
	err = foreign.Error(err)                                                               // a plugin's words
	e.note(provider, time.Since(began), err)
	return plain, stale, err
}

func (e *Encryption) about(key string) value.Context { return value.DefaultContext(e.config.Path(key)) }

// Check is a condition of health.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Checks returns the conditions of health: that the KMS plugins answer. Their names stay when the file changes.
func (e *Encryption) Checks() []Check {
	var out []Check
	for i, c := range e.current.Load().checks {
		out = append(out, Check{Name: c.Name(), Run: func(ctx context.Context) error {
			return check(ctx, e.current.Load().checks[i]) // with Reload there is exactly one, at any time
		}})
	}
	return out
}

// check asks one of the library's health checks, which want a request.
func check(ctx context.Context, c healthz.HealthChecker) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz/"+c.Name(), nil)
	if err != nil {
		return err
	}
	return c.Check(r)
}
