/** Problems with stages that run in Kubernetes. */
export const kubernetesProblems = {
  KUBERNETES_CLIENT_MISSING: {
    status: 409,
    means: 'Stages are to run in Kubernetes, but its client is not installed.',
    hint: 'Install it beside Pawl: npm install @kubernetes/client-node.',
  },
  KUBERNETES_UNREACHABLE: {
    status: 503,
    means: 'The Kubernetes API cannot be reached, or did not answer as it should.',
    hint: 'Nothing is concluded from that; it is asked again.',
  },
  KUBERNETES_REFUSED: {
    status: 409,
    means: 'Kubernetes does not allow this.',
    hint: 'The details hold its words: look at the Role (deploy/stages/rbac.yaml), the quota and the manifest.',
  },
  POD_NOT_ALLOWED: {
    status: 403,
    means: 'The server does not allow stages to use this image, Secret, service account or namespace.',
    hint: 'Use one that the details list as allowed, or have an administrator add it to the setting that they name.',
  },
} as const
