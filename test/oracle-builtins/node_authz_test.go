package oraclebuiltins

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	nodeauthz "github.com/bowsprit/bowsprit/internal/feature/authorize/node"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// nodeCluster is a random cluster, in Kubernetes' graph and in our store.
type nodeCluster struct {
	*rand.Rand
	graph   *node.Graph
	objects map[string]any
}

func (c *nodeCluster) pick(of ...string) string { return of[c.IntN(len(of))] }
func (c *nodeCluster) namespace() string        { return c.pick("n1", "n2") }
func (c *nodeCluster) name() string             { return c.pick("a", "b", "c", "d", "e", "") }
func (c *nodeCluster) node() string             { return c.pick("node1", "node2", "node3", "") }

func (c *nodeCluster) local() *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: c.name()}
}

func (c *nodeCluster) remote() *corev1.SecretReference {
	return &corev1.SecretReference{Name: c.name(), Namespace: c.pick("n1", "n2", "")}
}

// addPod adds a pod with a volume of any type, variables, and claims.
func (c *nodeCluster) addPod(name string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace()}}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = c.node(), c.name()
	if c.IntN(8) == 0 {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	var env []corev1.EnvVar
	var from []corev1.EnvFromSource
	switch c.IntN(5) {
	case 0:
		env = []corev1.EnvVar{{Name: "x"}, {ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *c.local()},
		}}}
	case 1:
		env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: *c.local()},
		}}}
	case 2:
		from = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *c.local()}}}
	case 3:
		from = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: *c.local()}}}
	}
	switch c.IntN(4) {
	case 0:
		pod.Spec.Containers = []corev1.Container{{Env: env, EnvFrom: from}}
	case 1:
		pod.Spec.InitContainers = []corev1.Container{{Env: env, EnvFrom: from}}
	case 2:
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: env, EnvFrom: from}},
		}
	case 3:
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{*c.local()}
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: c.pick("a", "b"), VolumeSource: c.source()}}
	c.addClaims(pod)
	c.objects["pods/"+pod.Namespace+"/"+pod.Name] = pod
	if pod.Spec.NodeName != "" {
		c.graph.AddPod(pod)
	}
}

func (c *nodeCluster) source() corev1.VolumeSource {
	secret, config := c.local(), c.local()
	return []corev1.VolumeSource{
		{}, {Secret: &corev1.SecretVolumeSource{SecretName: c.name()}},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: c.name()}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: secret}}, {CephFS: &corev1.CephFSVolumeSource{}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: secret}},
		{FlexVolume: &corev1.FlexVolumeSource{SecretRef: secret}},
		{RBD: &corev1.RBDVolumeSource{SecretRef: secret}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: secret}},
		{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: secret}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: secret}},
		{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: secret}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *config}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: *secret}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: *config}},
		}}},
		{Ephemeral: &corev1.EphemeralVolumeSource{}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.name()}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.name()}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.name()}},
	}[c.IntN(18)]
}

func (c *nodeCluster) addClaims(pod *corev1.Pod) {
	name := c.name()
	claim := corev1.PodResourceClaim{Name: "x"}
	switch c.IntN(4) {
	case 0:
		claim.ResourceClaimName = &name
	case 1:
		claim.ResourceClaimTemplateName = new("template")
		status := corev1.PodResourceClaimStatus{Name: c.pick("x", "y")}
		if name != "" {
			status.ResourceClaimName = &name
		}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{status}
	case 2:
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: name}
	}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
}

func (c *nodeCluster) addVolume(name string) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if c.IntN(6) > 0 {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.namespace(), Name: c.pick("a", "b", "c", "d", "e")}
	}
	secret := c.remote()
	var namespace *string
	if c.IntN(2) == 0 {
		namespace = &secret.Namespace
	}
	pv.Spec.PersistentVolumeSource = []corev1.PersistentVolumeSource{
		{}, {AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: c.name(), SecretNamespace: namespace}},
		{CephFS: &corev1.CephFSPersistentVolumeSource{SecretRef: secret}},
		{Cinder: &corev1.CinderPersistentVolumeSource{SecretRef: secret}},
		{FlexVolume: &corev1.FlexPersistentVolumeSource{SecretRef: secret}},
		{RBD: &corev1.RBDPersistentVolumeSource{SecretRef: secret}},
		{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{SecretRef: secret}},
		{ISCSI: &corev1.ISCSIPersistentVolumeSource{SecretRef: secret}},
		{StorageOS: &corev1.StorageOSPersistentVolumeSource{
			SecretRef: &corev1.ObjectReference{Name: secret.Name, Namespace: secret.Namespace},
		}},
		{CSI: &corev1.CSIPersistentVolumeSource{
			NodePublishSecretRef: secret, NodeStageSecretRef: c.remote(), NodeExpandSecretRef: c.remote(),
			ControllerPublishSecretRef: c.remote(),
		}},
	}[c.IntN(10)]
	c.objects["persistentvolumes/"+name] = pv
	c.graph.AddPV(pv)
}

// randomRequest is a random one of a kubelet, mostly.
func (c *nodeCluster) randomRequest() (*user.DefaultInfo, *request.Info) {
	u := &user.DefaultInfo{Name: "system:node:" + c.node(), Groups: []string{"system:nodes"}}
	switch c.IntN(20) {
	case 0:
		u.Groups = []string{"other"}
	case 1:
		u.Name = "node1"
	}
	info := &request.Info{
		IsResource: true, Verb: c.pick("get", "get", "get", "list", "watch", "create", "update", "patch", "delete",
			"deletecollection", "impersonate"),
		Version: "v1", Namespace: c.pick("n1", "n2", "n1", "n2", "", "kube-node-lease"),
		Name: c.pick("a", "b", "c", "d", "e", "p1-a", "p2-b", "p3", "p4", "v1", "v2", "node1", "node2", ""),
	}
	if c.IntN(5) == 0 {
		info.Subresource = c.pick("status", "token", "eviction", "log")
	}
	if c.IntN(4) == 0 {
		info.FieldSelector = c.pick("spec.nodeName=node1", "spec.nodeName==node2", "spec.nodeName!=node1", "a=b",
			"spec.nodeName=node1,a=b", "=,=")
	}
	group := c.pick("", "", "", "", "apps", "coordination.k8s.io", "storage.k8s.io", "resource.k8s.io", "events.k8s.io",
		"certificates.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "node.k8s.io")
	info.Group = group
	info.Resource = c.pick(map[string][]string{
		"": {
			"secrets", "secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts",
			"pods", "nodes", "services", "events", "endpoints", "namespaces",
		},
		"apps":                  {"deployments", "secrets"},
		"coordination.k8s.io":   {"leases"},
		"events.k8s.io":         {"events"},
		"node.k8s.io":           {"runtimeclasses"},
		"storage.k8s.io":        {"csinodes", "csidrivers", "volumeattachments", "storageclasses"},
		"resource.k8s.io":       {"resourceclaims", "resourceslices", "deviceclasses"},
		"certificates.k8s.io":   {"certificatesigningrequests", "podcertificaterequests", "clustertrustbundles"},
		"authentication.k8s.io": {"tokenreviews"},
		"authorization.k8s.io": {
			"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews",
		},
	}[group]...)
	switch info.Resource {
	case "persistentvolumes", "volumeattachments", "resourceslices", "nodes", "csinodes":
		if c.IntN(4) > 0 {
			info.Namespace = ""
		}
	}
	if c.IntN(30) == 0 {
		info = &request.Info{Verb: "get", Path: c.pick("/healthz", "/metrics")}
	}
	return u, info
}

// TestNodeAuthorizer compares decisions and their texts over random clusters. CHECKS is the number of requests, 100,000
// if unset.
func TestNodeAuthorizer(t *testing.T) {
	st, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: embedded.Config{Dir: t.TempDir(), NoSync: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	allowed := map[string]int{}
	clusters := uint64(10)
	if n, err := strconv.ParseUint(os.Getenv("CHECKS"), 10, 64); err == nil {
		clusters = n/10_000 + 1
	}
	for seed := range clusters {
		c := &nodeCluster{
			Rand: rand.New(rand.NewPCG(seed, 36)), graph: node.NewGraph(), objects: map[string]any{},
		}
		pods := 12
		if seed%5 == 4 {
			pods = 300 // enough for indexes
		}
		fill(c, pods)
		stored := map[string]int64{}
		for key, obj := range c.objects {
			raw, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			if stored[key], err = st.Create(t.Context(), key, raw); err != nil {
				t.Fatal(err)
			}
		}
		view := watchcache.New(st, watchcache.Options{})
		if err := view.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ours := nodeauthz.Authorizer{View: view, PodCertificates: true, TrustBundles: true}
		theirs := node.NewAuthorizer(c.graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
		for range 10_000 {
			u, info := c.randomRequest()
			d, err := ours.Authorize(t.Context(), u, info)
			decision, reason, theirErr := theirs.Authorize(context.Background(), asRecord(u, info))
			if d.Allowed() != (decision == authorizer.DecisionAllow) || d.Reason != reason || err != nil ||
				theirErr != nil || d.Verdict == authz.Deny {
				t.Fatalf("seed %d: %s %+v:\nours %+v %v\ntheirs %v %q %v", seed, u.Name, info, d, err, decision, reason,
					theirErr)
			}
			if d.Allowed() {
				allowed[info.Resource]++
			}
		}
		for key, rev := range stored {
			if _, err := st.Delete(t.Context(), key, rev); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, resource := range []string{"secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes",
		"serviceaccounts", "pods", "resourceclaims", "resourceslices", "volumeattachments", "leases", "csinodes"} {
		if allowed[resource] < 5 {
			t.Errorf("%s: allowed %d times only: the questions are wrong", resource, allowed[resource])
		}
	}
}

func fill(c *nodeCluster, pods int) {
	for i := range pods {
		c.addPod(fmt.Sprint("p", i))
	}
	for i := range 6 {
		c.addVolume(fmt.Sprint("v", i))
	}
	for _, name := range []string{"a", "b", "c"} {
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		va.Spec.NodeName = c.node()
		c.objects["volumeattachments/"+name] = va
		c.graph.AddVolumeAttachment(name, va.Spec.NodeName)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if n := c.node(); n != "" {
			slice.Spec.NodeName = &n
			c.graph.AddResourceSlice(name, n)
		}
		c.objects["resourceslices/"+name] = slice
	}
}

func asRecord(u user.Info, info *request.Info) authorizer.AttributesRecord {
	r := authorizer.AttributesRecord{
		User: u, Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.Group, APIVersion: info.Version,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResource,
		Path: info.Path,
	}
	selector, err := fields.ParseSelector(info.FieldSelector)
	if r.FieldSelectorParsingErr = err; err == nil {
		r.FieldSelectorRequirements = selector.Requirements()
	}
	return r
}
