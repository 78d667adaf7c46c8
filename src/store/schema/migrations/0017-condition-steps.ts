/** How many steps the conditions of a job have taken in its round. This number is limited. */
export const conditionSteps = `
alter table pawl.job add column condition_steps int not null default 0;
`
