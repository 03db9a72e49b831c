package aspod

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]target{
		"deployment/web": {"deployment", "web"}, "Deployment/web": {"deployment", "web"},
		"deploy/web": {"deployment", "web"}, "sts/db": {"statefulset", "db"},
		"daemonsets.apps/agent": {"daemonset", "agent"},
		"":                      {}, "web": {}, "deployment/": {}, "pod/web": {}, "deployment/a/b": {},
	} {
		got, err := parseTarget(text)
		if (err == nil) != (want != target{}) || err == nil && got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestExpand has the examples of Kubernetes' documentation of dependent variables.
func TestExpand(t *testing.T) {
	t.Parallel()
	known := variables{"A": "a", "B": "$(A)"}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(A)-$(A)": "a-a", "$(B)": "$(A)", "$$(A)": "$(A)", "$$$(A)": "$a",
		"$(NONE)": "$(NONE)", "$(A": "$(A", "$": "$", "$A": "$A", "a$": "a$", "$()": "$()", "$$": "$",
	} {
		if got := expand(text, known); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func testPod(container corev1.Container, volumes ...corev1.Volume) *pod {
	container.Name = "manager"
	return &pod{namespace: "team", name: "manager-as-pod", host: "127.0.0.1", port: "6443", ca: []byte("CA"),
		container: container, tokens: map[string]token{}, template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "b": "c"}},
			Spec:       corev1.PodSpec{ServiceAccountName: "op", Volumes: volumes},
		}}
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func testObjects() *fake.Clientset {
	meta := metav1.ObjectMeta{Namespace: "team", Name: "data"}
	return fake.NewClientset(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("p"), "tls.crt": []byte("one")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"level": "debug", "not a name": "x"},
			BinaryData: map[string][]byte{"binary": {0, 1}}})
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	yes := true
	from := func(v corev1.EnvVarSource) *corev1.EnvVarSource { return &v }
	p := testPod(corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1500Ki"),
			"cpu": resource.MustParse("1500m")}},
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "C_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("data")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("none"), Optional: &yes}},
		},
		Env: []corev1.EnvVar{
			{Name: "ADDRESS", Value: "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"},
			{Name: "POD_NAME", ValueFrom: from(corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}})},
			{Name: "APP", ValueFrom: from(corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}})},
			{Name: "PASSWORD", ValueFrom: from(corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("data"), Key: "password"}})},
			{Name: "GONE", ValueFrom: from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: named("data"), Key: "none", Optional: &yes}})},
			{Name: "CPU", ValueFrom: from(corev1.EnvVarSource{
				ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}})},
			{Name: "MIB", ValueFrom: from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}})},
		},
	})
	got, err := p.environment(t.Context(), testObjects())
	if err != nil {
		t.Fatal(err)
	}
	want := variables{"C_level": "debug", "ADDRESS": "127.0.0.1:6443", "POD_NAME": "manager-as-pod", "APP": "web",
		"PASSWORD": "p", "CPU": "2", "MIB": "2", "POD_NAMESPACE": "team", "HOSTNAME": "manager-as-pod",
		"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	over := got.over([]string{"PATH=/bin", "KUBECONFIG=/admin", "KUBERNETES_OTHER=1", "APP=mine",
		stageVariable + "=x"})
	if !slices.Contains(over, "PATH=/bin") || !slices.Contains(over, "APP=web") || len(over) != len(want)+1 {
		t.Errorf("over this process's variables: %q", over)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]corev1.EnvVarSource{
		`"none" not found`: {SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("none"), Key: "a"}},
		"Secret data has no key none": {
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("data"), Key: "none"}},
		"metadata.none is unknown": {FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.none"}},
		"has no limits.cpu":        {ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
		"is not supported":         {},
	} {
		p := testPod(corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &v}}})
		_, err := p.environment(t.Context(), testObjects())
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "variable A of container") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	p := testPod(corev1.Container{Args: []string{"--ns=$(POD_NAMESPACE)", "-v"}})
	known := variables{"POD_NAMESPACE": "team"}
	for given, want := range map[string]string{"./m": "./m --ns=team -v", "./m --own": "./m --own"} {
		if got := strings.Join(p.commandLine(strings.Fields(given), known), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
