package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/check"
)

// deployment is the schema of deployment.yaml, and nothing else.
type deployment struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Replicas int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Strategy struct {
			Type          string
			RollingUpdate struct {
				MaxUnavailable int `yaml:"maxUnavailable"`
				MaxSurge       int `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []container
			}
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct {
		Name      string
		ValueFrom map[string]map[string]string `yaml:"valueFrom"`
	}
	Ports []struct {
		ContainerPort int `yaml:"containerPort"`
	}
	Lifecycle struct {
		PreStop struct {
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Resources      struct{ Requests, Limits map[string]string }
}

type probe struct {
	HTTPGet struct {
		Path string
		Port int
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

// broken returns the parts of the manifest against the rules of docs/recipes.md.
func broken(manifest []byte) error {
	var d deployment
	decoder := yaml.NewDecoder(bytes.NewReader(manifest))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil {
		return err
	}
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		return errors.New("not one container")
	}
	c := pod.Containers[0]
	cfg, err := parse(c.Args) // as the program does
	if err != nil {
		return err
	}
	var wrong []error
	rule := func(kept bool, format string, args ...any) {
		if !kept {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	grace := seconds(c.Lifecycle.PreStop.Sleep.Seconds) + cfg.longest + releaseTimeout + time.Second
	rule(seconds(pod.TerminationGracePeriodSeconds) >= grace, "the grace period is below %v", grace)
	rule(cfg.ttl >= 10*time.Second, "a pause of a few seconds loses a lock with a TTL of %v", cfg.ttl)
	rule(cfg.ttl <= seconds(pod.TerminationGracePeriodSeconds), "others wait for %v after a crash, longer than for a stop", cfg.ttl)
	rule(d.Spec.Strategy.Type == "RollingUpdate" && d.Spec.Strategy.RollingUpdate.MaxUnavailable == 0, "a rollout takes away workers before new ones are ready")
	for _, p := range []probe{c.LivenessProbe, c.ReadinessProbe} {
		rule(p.HTTPGet.Path == "/livez" || p.HTTPGet.Path == "/readyz", "the worker does not serve %s", p.HTTPGet.Path)
		rule(len(c.Ports) == 1 && p.HTTPGet.Port == c.Ports[0].ContainerPort && strings.HasSuffix(cfg.listen, fmt.Sprint(":", p.HTTPGet.Port)), "nobody listens at port %d", p.HTTPGet.Port)
	}
	rule(c.LivenessProbe.HTTPGet.Path == "/livez", "a worker that stops would be killed")
	rule(seconds(c.LivenessProbe.PeriodSeconds*c.LivenessProbe.FailureThreshold) > cfg.ttl, "a pause that a lease survives kills the worker")
	rule(c.Resources.Limits["cpu"] == "", "a CPU limit pauses the worker")
	rule(c.Resources.Requests["cpu"] != "", "no CPU is requested")
	rule(c.Resources.Limits["memory"] == c.Resources.Requests["memory"], "it may be evicted when memory is short")
	rule(fmt.Sprint(d.Spec.Selector.MatchLabels) == fmt.Sprint(d.Spec.Template.Metadata.Labels), "the labels differ")
	env := map[string]bool{}
	for _, e := range c.Env {
		env[e.Name] = e.ValueFrom["secretKeyRef"] != nil
	}
	rule(env["REDIS_URL"] && cfg.url == "", "the URL is not from a secret")
	return errors.Join(wrong...)
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("deployment.yaml")
	check.Must(t, err)
	check.OK(t, broken(manifest))
	for _, tt := range []struct{ setting, instead, want string }{
		{"PeriodSeconds: 45", "PeriodSeconds: 30", "the grace period is below 40s"},
		{"-longest=30s", "-longest=40s", "the grace period is below 50s"},
		{"seconds: 5", "seconds: 30", "the grace period is below 1m5s"},
		{"-ttl=15s", "-ttl=5s", "loses a lock with a TTL of 5s"},
		{"-ttl=15s", "-ttl=1m", "others wait for 1m0s"},
		{"maxUnavailable: 0", "maxUnavailable: 1", "a rollout takes away workers"},
		{"path: /livez", "path: /readyz", "would be killed"},
		{"path: /livez", "path: /holds-the-lock", "does not serve /holds-the-lock"},
		{"containerPort: 8080", "containerPort: 8081", "nobody listens at port 8080"},
		{"failureThreshold: 3", "failureThreshold: 1", "kills the worker"},
		{"limits: #", "limits:\n              cpu: 250m #", "a CPU limit"},
		{"cpu: 250m", "ephemeral-storage: 1Gi", "no CPU is requested"},
		{"- -note", "- -redis=redis://:secret@redis:6379\n            - -note", "not from a secret"},
		{"secretKeyRef", "configMapKeyRef", "not from a secret"},
		{"preStop:", "prestop:", "not found"},
		{"-ttl", "-time-to-live", "not defined"},
	} {
		changed := strings.Replace(string(manifest), tt.setting, tt.instead, 1)
		if err := broken([]byte(changed)); changed == string(manifest) || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %q: %v, want: %s", tt.instead, err, tt.want)
		}
	}
}
