package bowsprit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
)

// pathsOnly allows all paths and no resource, as a role for nonResourceURLs "*" does.
type pathsOnly struct{ authz.AlwaysDeny }

func (pathsOnly) Authorize(_ context.Context, _ user.Info, what *request.Info) (authz.Decision, error) {
	if what.IsResource {
		return authz.Decision{}, nil
	}
	return authz.Decision{Verdict: authz.Allow}, nil
}

// TestSnapshotNeedsAll checks that the permission for all paths does not include all data.
func TestSnapshotNeedsAll(t *testing.T) {
	t.Parallel()
	serve := snapshots().Pages(&part.Host{Authorizer: pathsOnly{}})[backup.Path]
	w := httptest.NewRecorder()
	serve(w, httptest.NewRequest(http.MethodGet, backup.Path, nil), &request.Info{}, &user.DefaultInfo{Name: "bob"})
	want := `User \"bob\" cannot get resource \"*\" in API group \"*\" at the cluster scope`
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
