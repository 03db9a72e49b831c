package bootstraptoken

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/auth/token"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// The content of the ConfigMap cluster-info: a kubeconfig without users, and its signatures by token ID.
const (
	clusterInfo     = "cluster-info"
	keyKubeconfig   = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
)

// mark is in every secret with a token; most secrets have it nowhere and need no further look.
var mark = []byte(`"` + string(token.BootstrapType) + `"`)

// tokenSecret returns the secret of a token, or nil if e is another object.
func tokenSecret(e *watchcache.Entry) *corev1.Secret {
	if e.Namespace != metav1.NamespaceSystem || !bytes.Contains(e.JSON(), mark) {
		return nil
	}
	var s corev1.Secret
	if json.Unmarshal(e.JSON(), &s) != nil || s.Type != token.BootstrapType {
		return nil
	}
	return &s
}

// signer signs the ConfigMap cluster-info with every valid signing token. Its only key is "".
type signer struct{ *part.Host }

func (s *signer) Observe(ev *watchcache.Event, need func(string)) {
	switch prefix := ev.Collection.Prefix(); {
	case prefix == "configmaps" && ev.Entry.Name == clusterInfo && ev.Entry.Namespace == metav1.NamespacePublic &&
		ev.Type != watchcache.Deleted:
		need("")
	case prefix == "secrets" && ev.Entry.Namespace == metav1.NamespaceSystem &&
		(strings.HasPrefix(ev.Entry.Name, token.BootstrapNamePrefix) || tokenSecret(ev.Entry) != nil):
		need("")
	}
}

// Reconcile updates the tokens' signatures of the ConfigMap cluster-info. An expired token gets no signature, even
// while it exists. The next expiry schedules another reconcile.
func (s *signer) Reconcile(ctx context.Context, _ string) error {
	entry := s.View.Collection(ref.ConfigMaps.Prefix).Snapshot().Get(metav1.NamespacePublic, clusterInfo)
	if entry == nil || entry.Deleting {
		return nil
	}
	tokens, next := s.tokens()
	if _, changed := sign(entry.JSON(), tokens); changed {
		if err := s.write(ctx, tokens); err != nil {
			return err
		}
	}
	if next > 0 {
		return control.Again(next)
	}
	return nil
}

// tokens returns the signing tokens, and the time until the first of them expires; 0 means never.
func (s *signer) tokens() (all []token.BootstrapToken, next time.Duration) {
	s.View.Collection(ref.Secrets.Prefix).Snapshot().Scan(metav1.NamespaceSystem, "", func(e *watchcache.Entry) bool {
		secret := tokenSecret(e)
		if secret == nil {
			return true
		}
		if t, ok := token.BootstrapForSigning(secret, s.Now()); ok {
			all = append(all, t)
			if left, _ := token.BootstrapRemaining(secret, s.Now()); left > 0 && (next == 0 || left < next) {
				next = left
			}
		}
		return true
	})
	return all, next
}

func (s *signer) write(ctx context.Context, tokens []token.BootstrapToken) error {
	call, err := s.Verbs.Call(configMaps, metav1.NamespacePublic, clusterInfo,
		control.ControllerUser("bootstrap-signer"))
	if err != nil {
		return err
	}
	_, err = s.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			there := object.Object{}
			if data, ok := obj["data"].(object.Object); ok {
				there = data
			}
			have := map[string]string{}
			for key, value := range there {
				have[key], _ = value.(string)
			}
			want, _ := signatures(have, tokens)
			for key := range have {
				if strings.HasPrefix(key, signaturePrefix) {
					delete(there, key)
				}
			}
			for key, value := range want {
				there[key] = value
			}
			obj["data"] = there
			return obj, nil
		})
	if apierrors.IsConflict(err) {
		return nil // it has changed, which requeues it
	}
	return control.IgnoreNotFound(err)
}

// sign returns the signatures that the ConfigMap in doc should have, and whether it has others.
func sign(doc []byte, tokens []token.BootstrapToken) (want map[string]string, changed bool) {
	var m corev1.ConfigMap
	if json.Unmarshal(doc, &m) != nil {
		return nil, false
	}
	return signatures(m.Data, tokens)
}

// signatures returns the wanted signatures of a ConfigMap with the given data, and whether they differ. Without a
// kubeconfig there is nothing to sign, and existing data stays.
func signatures(data map[string]string, tokens []token.BootstrapToken) (want map[string]string, changed bool) {
	have := maps.Clone(data)
	maps.DeleteFunc(have, func(key, _ string) bool { return !strings.HasPrefix(key, signaturePrefix) })
	content, ok := data[keyKubeconfig]
	if !ok {
		return have, false
	}
	want = map[string]string{}
	for _, t := range tokens {
		if key := signaturePrefix + t.ID; want[key] == "" {
			want[key] = t.Sign(content)
		}
	}
	return want, !maps.Equal(have, want)
}
