package token

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Bootstrap accepts the tokens with which nodes join a cluster: secrets in kube-system named bootstrap-token-ID with
// the token ID.SECRET. The user is system:bootstrap:ID, in the group system:bootstrappers.
type Bootstrap struct {
	View *watchcache.View
	// Audiences lists the names of this server, the tokens' audiences.
	Audiences []string
	Now       func() time.Time
	Log       *slog.Logger
}

// Authenticate returns the user of a token, and the wanted audiences for which it is valid. It implements authn.Bearer.
func (b *Bootstrap) Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	t, err := ParseBootstrap(token)
	if err != nil {
		return nil, nil, nil // a token of another kind
	}
	good := b.Audiences
	if len(wanted) > 0 {
		good = intersect(b.Audiences, wanted)
		if len(good) == 0 {
			return nil, nil, nil
		}
	}
	// Deleting a token must end it.
	if err := b.View.FreshOwn(ctx); err != nil {
		return nil, nil, err
	}
	name := BootstrapNamePrefix + t.ID
	entry := b.View.Collection("secrets").Snapshot().Get(metav1.NamespaceSystem, name)
	if entry == nil {
		b.Log.Debug("no secret for a bootstrap token", "secret", name)
		return nil, nil, nil
	}
	var secret corev1.Secret
	if err := json.Unmarshal(entry.JSON(), &secret); err != nil {
		return nil, nil, fmt.Errorf("secret %s/%s: %w", metav1.NamespaceSystem, name, err)
	}
	groups, problem := bootstrapGroups(&secret, t.ID, t.Secret, b.Now())
	if problem != "" {
		b.Log.Debug("a bootstrap token is not accepted", "secret", name, "problem", problem)
		return nil, nil, nil
	}
	return &user.DefaultInfo{Name: "system:bootstrap:" + t.ID, Groups: groups}, good, nil
}

// intersect returns the elements of wanted that are in names.
func intersect(names, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(s string) bool { return !slices.Contains(names, s) })
}
