package accounts

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// tokenSecrets fills secrets of type kubernetes.io/service-account-token, and deletes them with their service accounts.
// Its keys are "secret namespace/name", "account namespace/name" and "reference namespace/account/secret".
type tokenSecrets struct {
	*part.Host
	need func(string)
}

// tokenSecretMark is in every secret of the type; most secrets have it nowhere and need no further look.
var tokenSecretMark = []byte(`"` + string(corev1.SecretTypeServiceAccountToken) + `"`)

func isTokenSecret(e *watchcache.Entry) bool {
	if !bytes.Contains(e.JSON(), tokenSecretMark) {
		return false
	}
	kind, _ := e.Field("type")
	return kind == string(corev1.SecretTypeServiceAccountToken)
}

func (t *tokenSecrets) Observe(ev *watchcache.Event, need func(string)) {
	switch prefix := ev.Collection.Prefix(); {
	case prefix == "serviceaccounts" && ev.Type == watchcache.Deleted:
		need("account " + ev.Entry.Key())
	case prefix == "secrets" && isTokenSecret(ev.Entry):
		if ev.Type == watchcache.Deleted {
			need("reference " + ev.Entry.Namespace + "/" + accountOf(ev.Entry) + "/" + ev.Entry.Name)
		} else {
			need("secret " + ev.Entry.Key())
		}
	}
}

func accountOf(secret *watchcache.Entry) string {
	name, _ := secret.Field(`metadata.annotations.kubernetes\.io/service-account\.name`)
	return name
}

// Requests implements control.Requester.
func (t *tokenSecrets) Requests(need func(string)) { t.need = need }

func (t *tokenSecrets) Reconcile(ctx context.Context, key string) error {
	kind, rest, _ := strings.Cut(key, " ")
	parts := strings.Split(rest, "/")
	switch kind {
	case "account":
		// Each secret is looked at by itself: the account may have been made again.
		t.View.Collection(ref.Secrets.Prefix).Snapshot().Scan(parts[0], "", func(e *watchcache.Entry) bool {
			if isTokenSecret(e) && accountOf(e) == parts[1] {
				t.need("secret " + e.Key())
			}
			return true
		})
		return nil
	case "reference":
		return t.dropReference(ctx, parts[0], parts[1], parts[2])
	}
	return t.fill(ctx, parts[0], parts[1])
}

// fill completes a secret, or deletes it if its service account does not exist.
func (t *tokenSecrets) fill(ctx context.Context, namespace, name string) error {
	// On another replica, a secret may be created right after its service account.
	if _, err := t.View.Fresh(ctx); err != nil {
		return err
	}
	secret := t.View.Collection(ref.Secrets.Prefix).Snapshot().Get(namespace, name)
	if secret == nil || secret.Deleting || !isTokenSecret(secret) {
		return nil
	}
	account := t.View.Collection(ref.ServiceAccounts.Prefix).Snapshot().Get(namespace, accountOf(secret))
	uid, _ := secret.Field(`metadata.annotations.kubernetes\.io/service-account\.uid`)
	call, err := t.Verbs.Call(secretsResource, namespace, name, control.ControllerUser("tokens-controller"))
	if err != nil {
		return err
	}
	if account == nil || uid != "" && uid != account.UID {
		id := types.UID(secret.UID)
		_, err := t.Verbs.Delete(ctx, call, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}})
		if apierrors.IsConflict(err) {
			return nil // another secret has replaced it
		}
		return control.IgnoreNotFound(err)
	}
	_, err = t.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			of := serviceaccount.Named{Name: account.Name, UID: account.UID}
			return obj, t.complete(ctx, obj, namespace, name, of)
		})
	return control.IgnoreNotFound(err)
}

// complete adds missing data to a secret. It keeps an existing token, whatever its source.
func (t *tokenSecrets) complete(
	ctx context.Context, secret object.Object, namespace, name string, account serviceaccount.Named,
) error {
	data, _ := secret["data"].(object.Object)
	if data == nil {
		data = object.Object{}
		secret["data"] = data
	}
	encode := base64.StdEncoding.EncodeToString
	changed := false
	if ca := encode(t.Certificates.ServerCA()); data[corev1.ServiceAccountRootCAKey] != ca {
		data[corev1.ServiceAccountRootCAKey], changed = ca, true
	}
	if v, _ := data[corev1.ServiceAccountNamespaceKey].(string); v == "" {
		data[corev1.ServiceAccountNamespaceKey], changed = encode([]byte(namespace)), true
	}
	if v, _ := data[corev1.ServiceAccountTokenKey].(string); v == "" {
		token, err := t.Tokens.IssueLegacy(ctx, namespace, account, name)
		if err != nil {
			return err
		}
		data[corev1.ServiceAccountTokenKey], changed = encode([]byte(token)), true
	}
	if !changed {
		return nil
	}
	meta := secret["metadata"].(object.Object)
	annotations, _ := meta["annotations"].(object.Object)
	if annotations == nil {
		annotations = object.Object{}
		meta["annotations"] = annotations
	}
	annotations[corev1.ServiceAccountNameKey], annotations[corev1.ServiceAccountUIDKey] = account.Name, account.UID
	return nil
}

// dropReference removes a deleted secret from its service account's list.
func (t *tokenSecrets) dropReference(ctx context.Context, namespace, account, secret string) error {
	if account == "" || t.View.Collection(ref.Secrets.Prefix).Snapshot().Get(namespace, secret) != nil {
		return nil
	}
	e := t.View.Collection(ref.ServiceAccounts.Prefix).Snapshot().Get(namespace, account)
	if e == nil || !bytes.Contains(e.JSON(), []byte(`"secrets":[`)) {
		return nil
	}
	call, err := t.Verbs.Call(accountsResource, namespace, account, control.ControllerUser("tokens-controller"))
	if err != nil {
		return err
	}
	_, err = t.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			list, _ := obj["secrets"].([]any)
			kept := slices.DeleteFunc(slices.Clone(list), func(ref any) bool {
				m, _ := ref.(object.Object)
				return m["name"] == secret
			})
			if len(kept) == 0 {
				delete(obj, "secrets")
			} else {
				obj["secrets"] = kept
			}
			return obj, nil
		})
	return control.IgnoreNotFound(err)
}
