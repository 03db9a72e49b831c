package node_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const year = 365 * 24 * time.Hour

// TestYear checks that all pods and nodes survive when the clock moves by a year. A CronJob has one Job for all missed
// times, with an event if there are many, and objects with a TTL are gone. Certificates and tokens stay valid, since
// the identities of server and clients depend on the machine's time.
func TestYear(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	before, pods := m.pods(), m.uids()
	m.createCron("monthly", "0 0 1 * *")
	m.createCron("minutely", "* * * * *")
	ttl := int32(3600)
	m.createJob("kept", &ttl)
	m.createJob("stays", nil)
	for _, name := range []string{"kept", "stays"} {
		m.until(name+" to end", 0, func() string { return m.hasEnded(name) })
	}
	token, err := m.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	moved := m.clock.Now().Add(year)
	m.clock.Advance(year)
	m.until("a Job of each CronJob", 0, func() string { return m.ranSince("minutely", moved) + m.ran("monthly") })
	m.until("a word of what was missed", 0, func() string { return m.hasEvent("minutely", "TooManyMissedTimes") })
	m.until("the Job to be gone", 0, func() string {
		_, err := m.BatchV1().Jobs("default").Get(t.Context(), "kept", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return m.hasEnded("stays")
	})
	m.until("Leases of now", 0, func() string { return m.leasesSince(moved) + m.available() })
	if after := m.pods(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("pods by node: %v, before %v", after, before)
	}
	if now := m.uids(); fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("pods: %v, before %v", now, pods)
	}
	m.checkNodes(moved)
	m.checkKeys(token.Status.Token)
}

// createCron creates a CronJob.
func (m *moved) createCron(name, schedule string) {
	m.Helper()
	_, err := m.BatchV1().CronJobs("default").Create(m.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: schedule, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: runsOnce()}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
}

// createJob creates a Job that ends, with a ttl in seconds; nil means no TTL.
func (m *moved) createJob(name string, ttl *int32) {
	m.Helper()
	_, err := m.BatchV1().Jobs("default").Create(m.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ttl, Template: runsOnce()},
	}, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
}

func runsOnce() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
}

func (m *moved) hasEnded(name string) string {
	j, err := m.BatchV1().Jobs("default").Get(m.Context(), name, metav1.GetOptions{})
	if err != nil || j.Status.CompletionTime == nil {
		return fmt.Sprint(j.Status, err)
	}
	return ""
}

// uids returns the uids of the pods, sorted by name.
func (m *moved) uids() (uids []types.UID) {
	m.Helper()
	list, err := m.CoreV1().Pods("default").List(m.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		m.Fatal(err)
	}
	for _, p := range list.Items {
		uids = append(uids, p.UID)
	}
	return uids
}

// ran returns "" if exactly one Job was created for a CronJob's missed times, or two if a month has begun meanwhile;
// otherwise the reason.
func (m *moved) ran(name string) string {
	c, err := m.BatchV1().CronJobs("default").Get(m.Context(), name, metav1.GetOptions{})
	if err != nil || c.Status.LastSuccessfulTime == nil {
		return fmt.Sprint(c.Status, err)
	}
	jobs, err := m.BatchV1().Jobs("default").List(m.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	n := 0
	for i := range jobs.Items {
		if metav1.IsControlledBy(&jobs.Items[i], c) {
			n++
		}
	}
	if n == 0 || n > 2 {
		m.Errorf("%s has %d Jobs", name, n)
	}
	return ""
}

// ranSince returns "" if a CronJob has a Job for a time at or after since; otherwise the reason.
func (m *moved) ranSince(name string, since time.Time) string {
	c, err := m.BatchV1().CronJobs("default").Get(m.Context(), name, metav1.GetOptions{})
	last := c.Status.LastScheduleTime
	if err != nil || last == nil || last.Time.Before(since.Add(-time.Minute)) || c.Status.LastSuccessfulTime == nil {
		return fmt.Sprint(c.Status, err)
	}
	return ""
}

func (m *moved) hasEvent(name, reason string) string {
	events, err := m.CoreV1().Events("default").List(m.Context(), metav1.ListOptions{
		FieldSelector: "reason=" + reason + ",involvedObject.name=" + name,
	})
	if err != nil || len(events.Items) == 0 {
		return fmt.Sprint("no ", reason, err)
	}
	return ""
}

func (m *moved) leasesSince(since time.Time) string {
	leases, err := m.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(m.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) != 3 {
		return fmt.Sprint(len(leases.Items), err)
	}
	for _, l := range leases.Items {
		if l.Spec.RenewTime.Time.Before(since) {
			return l.Name + " was renewed at " + l.Spec.RenewTime.String()
		}
	}
	return ""
}

// checkNodes checks that no node was considered lost.
func (m *moved) checkNodes(since time.Time) {
	m.Helper()
	nodes, err := m.CoreV1().Nodes().List(m.Context(), metav1.ListOptions{})
	if err != nil {
		m.Fatal(err)
	}
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 {
			m.Errorf("%s has taints: %v", n.Name, n.Spec.Taints)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && (c.Status != corev1.ConditionTrue || c.LastTransitionTime.After(since)) {
				m.Errorf("%s: %v", n.Name, c)
			}
		}
	}
}

// checkKeys connects anew, with the certificates and with a token from before the clock was moved.
func (m *moved) checkKeys(token string) {
	m.Helper()
	for name, change := range map[string]func(*rest.Config){
		"the certificates": func(*rest.Config) {},
		"a token": func(c *rest.Config) {
			c.CertFile, c.KeyFile, c.CertData, c.KeyData = "", "", nil, nil
			c.BearerToken = token
		},
	} {
		config := rest.CopyConfig(m.config)
		change(config)
		// With a dialer of its own it does not share the old connection.
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			m.Fatal(err)
		}
		if _, err := client.AuthenticationV1().SelfSubjectReviews().Create(m.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err != nil {
			m.Errorf("with %s: %v", name, err)
		}
	}
}
