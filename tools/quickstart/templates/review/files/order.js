import { total } from "./cart.js";

export const invoice = (order) => `${order.customer} owes ${total(order.prices)}`;
