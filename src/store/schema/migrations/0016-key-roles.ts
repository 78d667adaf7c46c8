export const keyRoles = `
/* A key may have several roles. The column role keeps the first one: processes of an earlier version know no other. */
alter table pawl.key
  add column roles text[],
  add constraint key_roles_begin_with_role check (roles[1] = role);
`
