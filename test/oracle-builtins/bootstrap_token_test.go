package oraclebuiltins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/cluster-bootstrap/token/jws"
	tokenutil "k8s.io/cluster-bootstrap/token/util"
	secretutil "k8s.io/cluster-bootstrap/util/secrets"
	kubebootstrap "k8s.io/kubernetes/pkg/controller/bootstrap"

	"github.com/bowsprit/bowsprit/internal/auth/token"
)

// TestBootstrapTokens compares signatures, and the requirements for secrets, with Kubernetes' library of bootstrap
// tokens.
func TestBootstrapTokens(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 2000 {
		one := token.BootstrapToken{ID: oneOf(rng, "abcdef", "a", "", "<&>\"", "é"), Secret: randomText(rng)}
		content := randomText(rng)
		want, err := jws.ComputeDetachedSignature(content, one.ID, one.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := one.Sign(content); got != want {
			t.Fatalf("%q signed by %q: %s, want %s", content, one, got, want)
		}
		usages := []string{oneOf(rng, "signing", "authentication", "x", ""), oneOf(rng, "signing", "y")}
		group := oneOf(rng, "system:bootstrappers:", "system:bootstrappers", "x") +
			oneOf(rng, "", "a", "-", ":a", "a:", "A", "a\n")
		wanted := tokenutil.ValidateUsages(usages)
		if wanted == nil {
			wanted = tokenutil.ValidateBootstrapGroupName(group)
		}
		got := token.BootstrapToken{Usages: usages, Groups: []string{group}}.Validate()
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Fatalf("usages %q, group %q: %v, want %v", usages, group, got, wanted)
		}
		secret := randomTokenSecret(rng, now)
		left, expired := secretutil.GetExpiration(secret, now)
		if l, e := token.BootstrapRemaining(secret, now); l != left || e != expired {
			t.Fatalf("%q: %v %v, want %v %v", secret.Data, l, e, left, expired)
		}
		text := oneOf(rng, token.GenerateBootstrap(), randomText(rng), "abcdef.0123456789abcde",
			"abcdef.0123456789abcdef\n")
		if _, err := token.ParseBootstrap(text); (err == nil) != tokenutil.IsValidBootstrapToken(text) {
			t.Fatalf("token %q: %v", text, err)
		}
	}
}

// TestBootstrapSigner lets Kubernetes' controller sign a ConfigMap with random tokens, valid and invalid ones.
func TestBootstrapSigner(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	const content = "what is signed"
	want := map[string]string{"kubeconfig": content}
	client := fake.NewClientset()
	for i := range 300 {
		s := randomTokenSecret(rng, time.Now().Add(12*time.Hour))
		if rng.IntN(2) == 0 {
			s.Name, s.Data["token-id"] = fmt.Sprintf("bootstrap-token-a%05d", i), fmt.Appendf(nil, "a%05d", i)
		} else {
			s.Name += fmt.Sprintf("%d", i)
		}
		if err := client.Tracker().Add(s); err != nil {
			t.Fatal(err)
		}
		if one, ok := token.BootstrapForSigning(s, time.Now()); ok && s.Type == token.BootstrapType {
			want["jws-kubeconfig-"+one.ID] = one.Sign(content)
		}
	}
	if len(want) < 10 {
		t.Fatalf("only %d tokens sign", len(want)-1)
	}
	written := make(chan map[string]string, 1) // the first write
	client.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		m := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap)
		select {
		case written <- m.Data:
		default:
		}
		return false, nil, nil
	})
	if err := client.Tracker().Add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: metav1.NamespacePublic},
		Data:       map[string]string{"kubeconfig": content, "jws-kubeconfig-gone": "x"},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	shared := informers.NewSharedInformerFactory(client, 0)
	signer, err := kubebootstrap.NewSigner(client, shared.Core().V1().Secrets(), shared.Core().V1().ConfigMaps(),
		kubebootstrap.DefaultSignerOptions())
	if err != nil {
		t.Fatal(err)
	}
	shared.Start(ctx.Done())
	ended := make(chan struct{})
	go func() { defer close(ended); signer.Run(ctx) }()
	if got := <-written; !reflect.DeepEqual(got, want) {
		t.Errorf("Kubernetes' controller signs %d, ours %d:\n%v\n%v", len(got)-1, len(want)-1, got, want)
	}
	cancel()
	<-ended
	shared.Shutdown()
}

func oneOf(rng *rand.Rand, texts ...string) string { return texts[rng.IntN(len(texts))] }

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(40) {
		b.WriteRune([]rune("ab09.:-\n\"<>&é😀\x00")[rng.IntN(15)])
	}
	return b.String()
}

// randomTokenSecret returns a secret that a token may be in.
func randomTokenSecret(rng *rand.Rand, around time.Time) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      oneOf(rng, "bootstrap-token-", "token-") + oneOf(rng, "abcdef", "abcde", "ABCDEF"),
		},
		Type: token.BootstrapType, Data: map[string][]byte{},
	}
	if rng.IntN(5) == 0 {
		s.Type = corev1.SecretTypeOpaque
	}
	for _, one := range [][]string{
		{"token-id", "abcdef", "abcdef", "abcde", ""},
		{"token-secret", "0123456789abcdef", "0123456789abcdef", "x", ""},
		{"usage-bootstrap-signing", "true", "true", "false", ""},
		{
			"expiration", "", "", "tomorrow", around.Format(time.RFC3339), around.Add(time.Hour).Format(time.RFC3339),
			around.Add(-time.Second).Format(time.RFC3339), around.Add(-24 * time.Hour).Format(time.RFC3339),
		},
	} {
		if value := oneOf(rng, one[1:]...); value != "" || rng.IntN(2) == 0 {
			s.Data[one[0]] = []byte(value)
		}
	}
	return s
}
