package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// extensionObjects lists the objects of an installation, in the order of their creation.
var extensionObjects = []string{
	"namespaces/ship", "secrets/ship-tls", "serviceaccounts/ship",
	"clusterrolebindings.rbac.authorization.k8s.io/ship:ship:auth-delegator",
	"rolebindings.rbac.authorization.k8s.io/ship:ship:authentication-reader",
	"clusterroles.rbac.authorization.k8s.io/ship:ship", "clusterrolebindings.rbac.authorization.k8s.io/ship:ship",
	"services/ship", "apiservices.apiregistration.k8s.io/v1.sea.example.com",
	"apiservices.apiregistration.k8s.io/v2.sea.example.com",
}

// TestExtensionInstall installs a server, installs it again unchanged, and again with a new version and a new
// certificate. Its service account has the permissions it needs, and no others.
func TestExtensionInstall(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	install := func(apis string) []string {
		t.Helper()
		cmd := command(t, "extension", "install", "ship", "--api="+apis, "--kubeconfig="+server.Kubeconfig())
		var out, notes bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &notes
		if err := cmd.Run(); err != nil || !strings.Contains(notes.String(), "label app=ship") {
			t.Fatalf("%v %s", err, notes.String())
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	expect := func(got []string, objects []string, done func(object string) string) {
		t.Helper()
		var want []string
		for _, o := range objects {
			want = append(want, o+" "+done(o))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	one := extensionObjects[:len(extensionObjects)-1]
	expect(install("sea.example.com/v1"), one, func(string) string { return "created" })
	expect(install("sea.example.com/v1"), one, func(string) string { return "unchanged" })

	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := client.CoreV1().Secrets("ship").Get(t.Context(), "ship-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in := installation{Name: "ship", Namespace: "ship", CA: secret.Data["ca.crt"], Certificate: secret.Data["tls.crt"],
		Key: secret.Data["tls.key"]}
	now := time.Now()
	if !in.certified(now.Add(300*24*time.Hour)) || in.certified(now.Add(400*24*time.Hour)) {
		t.Error("the certificate is not good for a year")
	}
	secret.Data["tls.crt"] = nil
	if _, err := client.CoreV1().Secrets("ship").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(install("sea.example.com/v1,sea.example.com/v2"), extensionObjects, func(object string) string {
		switch object {
		case "secrets/ship-tls", extensionObjects[8]: // the authority is in both
			return "configured"
		case extensionObjects[9]:
			return "created"
		}
		return "unchanged"
	})
	for attributes, want := range map[authorizationv1.ResourceAttributes]bool{
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}:                     true,
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:              true,
		{Verb: "watch", Resource: "namespaces"}:                                                        true,
		{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:   true,
		{Verb: "get", Resource: "configmaps", Namespace: "kube-system", Name: authenticationConfigMap}: true,
		{Verb: "get", Resource: "configmaps", Namespace: "kube-system", Name: "other"}:                 false,
		{Verb: "get", Resource: "secrets", Namespace: "ship"}:                                          false,
		{Verb: "create", Resource: "namespaces"}:                                                       false,
	} {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:ship:ship", ResourceAttributes: &attributes,
			}}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != want {
			t.Errorf("%+v: allowed %v, %v", attributes, review.Status.Allowed, err)
		}
	}
}

const authenticationConfigMap = "extension-apiserver-authentication"

func TestExtensionInstallBadInput(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, `name the server, as in "bowsprit extension install ship --api sea.example.com/v1"`},
		{[]string{"ship"}, "--api is missing"},
		{[]string{"Ship", "--api=sea.example.com/v1"}, `NAME "Ship": `},
		{[]string{"ship", "--api=v1"}, `--api "v1" is not a group and a version such as sea.example.com/v1`},
		{[]string{"ship", "--api=a/b/c"}, `--api "a/b/c" is not a group`},
		{[]string{"ship", "--api=sea.example.com/v1", "--target-port=0"}, "--target-port 0: "},
		{[]string{"ship", "--api=sea.example.com/v1", "--namespace=a/b"}, `--namespace "a/b": `},
	} {
		out, err := command(t, append([]string{"extension", "install"}, test.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%q: %v %s, want %s", test.args, err, out, test.want)
		}
	}
	out, err := command(t, "extension", "install", "ship", "--api=sea.example.com/v1", "--dry-run").Output()
	if err != nil || strings.Count(string(out), "\n---\n") != 8 ||
		!strings.Contains(string(out), "name: v1.sea.example.com") {
		t.Errorf("--dry-run: %v %s", err, out)
	}
}
