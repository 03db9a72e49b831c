package parts

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

func (pathsOnly) Authorize(_ context.Context, _ user.Info, info *request.Info) (authz.Decision, error) {
	if info.IsResource {
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

func TestSetVerbosity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, body string
		code, set    int
		want         string
	}{
		{"PUT", "4", http.StatusOK, 4, "successfully set klog.logging.verbosity to 4\n"},
		{"GET", "", http.StatusNotAcceptable, -1, "unsupported http method\n"},
		{"PUT", "much", http.StatusBadRequest, -1, "strconv.ParseUint: parsing \"much\": invalid syntax\n"},
		{"PUT", "-1", http.StatusBadRequest, -1, "strconv.ParseUint: parsing \"-1\": invalid syntax\n"},
	} {
		set := -1
		w := httptest.NewRecorder()
		setVerbosity(func(v int) { set = v })(w, httptest.NewRequest(test.method, "/debug/flags/v",
			strings.NewReader(test.body)))
		if w.Code != test.code || set != test.set || w.Body.String() != test.want {
			t.Errorf("%s %s: %d %d %q", test.method, test.body, w.Code, set, w.Body)
		}
	}
}
