package people

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/testserver"
)

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// TestRemove checks that a user is removed from each binding, and that a binding with other subjects stays for them.
func TestRemove(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(testserver.Start(t).RESTConfig())
	ctx, view := t.Context(), rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	team := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "alice"}
	for name, subjects := range map[string][]rbacv1.Subject{
		"own": {user("alice")}, "shared": {user("bob"), user("alice"), team},
	} {
		meta := metav1.ObjectMeta{Name: name, Namespace: "default"}
		_, err := client.RbacV1().RoleBindings("default").Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: view}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: view}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	result, err := remove(ctx, client, "alice")
	if err != nil || result.print(&out) != nil || strings.Count(out.String(), "deleted") != 2 ||
		strings.Count(out.String(), "removed") != 2 {
		t.Errorf("%v: %s", err, &out)
	}
	bindings, err := grants(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, r := range rights(bindings, false) {
		left = append(left, r.Subject+" "+r.SubjectName+" "+r.Kind+" "+r.Name+" "+r.Role)
	}
	want := []string{
		"User bob ClusterRoleBinding shared ClusterRole/view", "User bob RoleBinding shared ClusterRole/view",
		"Group alice ClusterRoleBinding shared ClusterRole/view", "Group alice RoleBinding shared ClusterRole/view",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q", left)
	}
	if _, err := remove(ctx, client, "alice"); err == nil || !strings.Contains(err.Error(), `"alice"`) {
		t.Errorf("once more: %v", err)
	}
	if all := rights(bindings, true); len(all) <= len(want) {
		t.Errorf("with Kubernetes' own there are %d", len(all))
	}
}

// TestBind checks that a missing role is refused, and that an existing binding is no error.
func TestBind(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(testserver.Start(t).RESTConfig())
	for _, c := range []struct{ role, namespace, want string }{
		{"edit", "default", "User carol has the role edit in the namespace default."},
		{"edit", "default", "User carol has the role edit in the namespace default."},
		{"view", "", "User carol has the role view in all namespaces."}, {"nothing", "default", ""},
		{"view", "absent", ""},
	} {
		got, err := bind(t.Context(), client, createFlags{role: c.role, namespace: c.namespace,
			person: pki.Person{User: "carol"}})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s in %q: %q, %v", c.role, c.namespace, got, err)
		}
	}
}

// TestBindChanged checks that a changed binding of the same name is not reported as giving the role.
func TestBindChanged(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(testserver.Start(t).RESTConfig())
	flags := createFlags{role: "edit", namespace: "default", person: pki.Person{User: "carol"}}
	if _, err := bind(t.Context(), client, flags); err != nil {
		t.Fatal(err)
	}
	all := client.RbacV1().RoleBindings("default")
	b, err := all.Get(t.Context(), bindingName("carol", "edit"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Subjects = []rbacv1.Subject{user("dave")}
	if _, err := all.Update(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := bind(t.Context(), client, flags); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCreateRefuses checks that wrong arguments are reported before the command sends a request or makes a file.
func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const kubeconfig = "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], " +
		"contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a}], current-context: a}"
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, text := range map[string]string{
		"system:node:a":                       "are reserved",
		"alice --namespace=a":                 "--role",
		"a b":                                 "takes one name",
		"alice --data-dir=none":               "no server has written none/kubeconfig",
		"alice --data-dir=" + dir:             "made",
		"alice --role=view --data-dir=" + dir: "does not run: start it with \"bowsprit serve --data-dir=" + dir,
	} {
		cmd := Command(func(io.Writer, io.Writer, string, pki.Person) error { return errors.New("made") })
		cmd.SetArgs(append([]string{"create"}, strings.Fields(args)...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", args, err, text)
		}
	}
}
